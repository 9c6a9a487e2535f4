package main

import (
	"slices"

	"kubekey/pkg/playbook"
	"kubekey/pkg/settings"
)

// variablePage returns the page of variables that kk itself sets and reads.
func variablePage(magic []playbook.MagicVariable, connection []playbook.ConnectionVariable,
	table []settings.Setting) string {
	d := newDocument("Variables of kk")
	d.text("Variables that kk sets itself, and variables that specify how a host is reached. " +
		"[Variables](../guides/variables.md) shows how all others get their values.")
	d.text("## Magic variables")
	d.text("kk sets them, and nothing overrides them, unless the table says otherwise. " +
		"Each has a value where its subject exists: those of a role within roles, those of a play within plays. " +
		"`query('varnames', '.+')` lists the variables that have a value.")
	var rows [][]string
	for _, m := range magic {
		doc := m.Doc
		if m.Yields {
			doc += "; a variable of this name that you set wins"
		}
		rows = append(rows, []string{quoted(m.Name), codes(m.Aliases), string(m.Of), sentence(doc)})
	}
	d.table([]string{"variable", "also", "of", "meaning"}, rows)
	d.text("## Connection variables")
	d.text("They specify how kk reaches a host. A variable wins over the keyword, and the keyword over the flag and " +
		"the setting. " +
		"A name of the second column wins over the name of the first, and of several names in it the last one wins. " +
		"Facts of a host never set them. Within a task, those marked as given have a value even if nobody sets them.")
	rows = nil
	for _, c := range connection {
		given := ""
		if c.Given {
			given = "yes"
		}
		rows = append(rows, []string{
			quoted(c.Name), codes(c.Aliases), c.Type.String(), code(c.Keyword), code(flagFor(c, table)), code(c.Setting),
			code(defaultOf(c, table)), given, sentence(c.Doc),
		})
	}
	d.table([]string{"variable", "also", "type", "keyword", "flag", "setting", "default", "given", "meaning"}, rows)
	return d.String()
}

func settingOf(c playbook.ConnectionVariable, table []settings.Setting) settings.Setting {
	i := slices.IndexFunc(table, func(s settings.Setting) bool { return s.Name == c.Setting })
	if i < 0 {
		return settings.Setting{}
	}
	return table[i]
}

func flagFor(c playbook.ConnectionVariable, table []settings.Setting) string {
	return flagOf(settingOf(c, table))
}

func defaultOf(c playbook.ConnectionVariable, table []settings.Setting) string {
	if c.Default != "" || c.Setting == "" {
		return c.Default
	}
	s := settingOf(c, table)
	if s.Type == "bool" && c.Type != playbook.Bool {
		return "" // whether to prompt for it
	}
	return s.Default
}
