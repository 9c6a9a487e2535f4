package main

import (
	"maps"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/playbook"
)

// keywordPage returns the page of keywords, grouped by the places where they are allowed.
func keywordPage(keywords []playbook.Keyword, refused map[string]string) string {
	d := newDocument("Keywords")
	d.text("What may stand on plays, roles, blocks, tasks and includes (include_tasks, include_role), beside the name " +
		"of a module. " +
		"A keyword that is in no table, or stands where it may not, is an error before the run. `kk doc KEYWORD` prints one.")
	var passedOn, alone [][]string
	for _, k := range keywords {
		row := []string{keywordName(k), k.Type.String(), k.On.String(), sentence(plainKeeping(k.Doc))}
		if k.Inherited {
			passedOn = append(passedOn, row)
		} else {
			alone = append(alone, row)
		}
	}
	head := []string{"keyword", "type", "on", "meaning"}
	d.text("## Inherited by what is inside")
	d.text("A play's keyword holds for its roles, blocks and tasks unless they set it themselves. " +
		"`when`, `tags`, `environment`, `module_defaults`, `notify` and `vars` add to what is further out.")
	d.table(head, passedOn)
	d.text("## Not inherited")
	d.table(head, alone)
	d.text("## Refused")
	d.text("Keywords of Ansible that kk does not have. Using one is an error that says what to do instead.")
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		rows = append(rows, []string{quoted(name), sentence(plainKeeping(refused[name]))})
	}
	d.table([]string{"keyword", "instead"}, rows)
	return d.String()
}

func keywordName(k playbook.Keyword) string {
	if len(k.Aliases) == 0 {
		return quoted(k.Name)
	}
	return quoted(k.Name) + ", also " + quotedList(k.Aliases)
}

// plainKeeping is plain for text that contains code quotes itself.
func plainKeeping(s string) string {
	if strings.Contains(s, "`") {
		return s
	}
	return plain(s)
}

// expressionPage returns the page of names that are available in expressions.
func expressionPage(env *expr.Env) string {
	d := newDocument("Filters, tests, lookups and functions")
	d.text("All that expressions and templates may use. They mean what they mean in Ansible; full names work too " +
		"(`ansible.builtin.combine`, `ansible.utils.ipaddr`). " +
		"An unknown name is an error before the run. Try one: `kk eval \"['b', 'a'] | sort\"`.")
	for _, part := range []struct {
		title, use string
		names      []string
	}{
		{"Filters", "`value | NAME(arguments)`", env.FilterNames()},
		{"Tests", "`value is NAME(arguments)`, `value is not NAME`; also `select('NAME')`", env.TestNames()},
		{"Lookups", "`lookup('NAME', ...)`, `query('NAME', ...)`, `with_NAME:`", env.LookupNames()},
		{"Functions", "`NAME(arguments)`", env.FunctionNames()},
	} {
		d.line("## %s", part.title)
		d.line("%s", part.use)
		d.text(quotedList(part.names))
	}
	return d.String()
}
