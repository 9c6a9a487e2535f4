package facts

import (
	"fmt"
	"sort"
	"strings"

	"kubekey/pkg/configparser"
	"kubekey/pkg/value"
)

// custom reads the host's own facts: each file, or what it prints when it is
// executable, is JSON or INI. What is neither becomes a text that says so.
func custom(s sections) *value.Dict {
	var names []string
	for section := range s {
		if name, ok := strings.CutPrefix(section, "local "); ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	local := value.NewDict()
	for _, name := range names {
		local.Set(strings.TrimSuffix(name, ".fact"), readCustom(name, s["local "+name], s.line("localrc "+name, 0)))
	}
	return local
}

func readCustom(name, text, rc string) any {
	if rc != "0" {
		return fmt.Sprintf("Failure executing fact script (%s), rc: %s", name, rc)
	}
	v, err := value.FromJSON([]byte(text))
	if err == nil {
		return v
	}
	if d := readINI(text); d != nil {
		return d
	}
	return fmt.Sprintf("error loading facts as JSON or ini - please check content: %s", name)
}

// maxOptions bounds what a host says in few bytes: the options of DEFAULT are in each section.
const maxOptions = 100_000

// readINI returns nil for what is no INI file.
func readINI(text string) *value.Dict {
	file, wrong := configparser.Parse(text, configparser.Rules{})
	if len(wrong) > 0 {
		return nil
	}
	d, n := value.NewDict(), 0
	for _, name := range file.Sections {
		section := value.NewDict()
		options, _ := file.Section(name)
		if n += len(options); n > maxOptions {
			return nil
		}
		for _, o := range options {
			section.Set(o.Name, o.Value)
		}
		d.Set(name, section)
	}
	return d
}
