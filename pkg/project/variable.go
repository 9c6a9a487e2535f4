package project

import (
	"errors"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
)

// CheckVariable reports a literal that is not valid for a connection variable. It returns nil if the value can be
// valid or is a template.
func CheckVariable(name string, raw any, at source.Pos) *source.Diagnostic {
	t := playbook.VariableType(name)
	text, isText := raw.(string)
	if t == "" || raw == nil || isText && (playbook.IsTemplate(text) || text == "" && t != playbook.Address) {
		return nil
	}
	_, err := t.Convert(raw)
	var bad *playbook.TypeError
	if !errors.As(err, &bad) {
		return nil
	}
	d := source.Errorf(at, "%s %s", name, bad.Problem()).WithHelp("%s", bad.Help())
	if isText && text == "" {
		d.Help = "remove the variable: without it the host is reached by its name"
	}
	return d
}
