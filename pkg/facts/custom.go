package facts

import (
	"fmt"
	"sort"
	"strings"

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
	if d, ok := parseINI(text); ok {
		return d
	}
	return fmt.Sprintf("error loading facts as JSON or ini - please check content: %s", name)
}

// parseINI reads sections of k=v or k: v; keys are in lower case, values are text.
func parseINI(text string) (*value.Dict, bool) {
	d := value.NewDict()
	var section *value.Dict
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		switch {
		case l == "", l[0] == '#', l[0] == ';':
			continue
		case l[0] == '[' && strings.HasSuffix(l, "]"):
			section = value.NewDict()
			d.Set(strings.TrimSpace(l[1:len(l)-1]), section)
			continue
		}
		i := strings.IndexAny(l, "=:")
		if section == nil || i <= 0 {
			return nil, false
		}
		section.Set(strings.ToLower(strings.TrimSpace(l[:i])), strings.TrimSpace(l[i+1:]))
	}
	return d, d.Len() > 0
}
