package settings

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/value"
)

// Format writes settings with their origins: as text, json or yaml.
func Format(values []Value, format string) (string, error) {
	switch format {
	case "json":
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = value.NewDict("name", v.Setting.Name, "value", value.Of(v.Value), "origin", v.Origin)
		}
		text, err := value.JSON(list, value.JSONOptions{Indent: 2})
		return text + "\n", err
	case "yaml":
		list := make([]yamlValue, len(values))
		for i, v := range values {
			list[i] = yamlValue{v.Setting.Name, v.Value, v.Origin}
		}
		text, err := yaml.Marshal(list)
		return string(text), err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, v := range values {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Setting.Name, v.text(), v.Origin)
	}
	err := w.Flush()
	return b.String(), err
}

type yamlValue struct {
	Name   string `yaml:"name"`
	Value  any    `yaml:"value"`
	Origin string `yaml:"origin"`
}

// text is a value on one line, - for none.
func (v Value) text() string {
	if s := strings.Join(v.Texts(), v.Setting.sep); s != "" {
		return strings.ReplaceAll(s, "\n", " ")
	}
	return "-"
}

// Describe explains a setting and where it is read from, in lines.
func (s Setting) Describe() []string {
	out := []string{s.Doc}
	if len(s.Choices) > 0 {
		out = append(out, "choices: "+strings.Join(s.Choices, ", "))
	}
	if s.Default != "" {
		out = append(out, "default: "+s.Default)
	}
	if s.Flag != "" {
		out = append(out, "flag: --"+s.Flag)
	}
	out = append(out, "environment: "+strings.Join(append([]string{s.OwnEnv()}, s.Env...), ", "))
	if len(s.INI) > 0 {
		keys := make([]string, len(s.INI))
		for i, k := range s.INI {
			keys[i] = k.String()
		}
		out = append(out, "ansible.cfg: "+strings.Join(keys, ", "))
	}
	return out
}

// Example is a kk.yaml that names every setting and sets none.
func Example() string {
	var b strings.Builder
	b.WriteString("# Settings of kk. The commented lines show the defaults.\n")
	for _, s := range Table() {
		def := s.Default
		switch {
		case s.isList():
			def = "[" + strings.ReplaceAll(def, ",", ", ") + "]"
		case def == "":
			def = `""`
		}
		fmt.Fprintf(&b, "\n# %s\n", strings.ToUpper(s.Doc[:1])+s.Doc[1:])
		if len(s.Choices) > 0 {
			fmt.Fprintf(&b, "# One of %s.\n", strings.Join(s.Choices, ", "))
		}
		fmt.Fprintf(&b, "# %s: %s\n", s.Name, def)
	}
	return b.String()
}
