package facts

import (
	"fmt"
	"sort"
	"strings"

	"kubekey/pkg/configparser"
	"kubekey/pkg/value"
)

// custom reads the host's custom facts: each file, or its output if it is executable, is JSON
// or INI. Otherwise the fact is an error text.
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

// maxOptions bounds the number of options: those of DEFAULT are repeated in every section, so
// a short text can produce many.
const maxOptions = 100_000

// readINI returns nil if the text is not INI.
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
