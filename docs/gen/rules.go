package main

import (
	"strings"

	"kubekey/pkg/lint"
)

// rulePages returns a page per rule of kk lint, and their list.
func rulePages(rules []lint.Rule) pages {
	p := pages{}
	list := newDocument("Rules of kk lint")
	list.text("`kk lint` reports what would fail before a run, as every run does, and applies these rules. `# noqa: ID` " +
		"on the line, or on the first line of the task, silences one; " +
		"`# noqa` silences all. `-o json` and `-o sarif` print the findings for programs.")
	var rows [][]string
	for _, r := range rules {
		rows = append(rows, []string{"[" + r.ID + "](" + r.ID + ".md)", sentence(r.Summary)})
		d := newDocument(r.ID)
		d.text(sentence(strings.ToUpper(r.Summary[:1]) + r.Summary[1:]))
		d.text(r.Why)
		d.text("## Found")
		example(d, r.Bad)
		d.text("## Fine")
		example(d, r.Good)
		p["lint/"+r.ID+".md"] = d.String()
	}
	list.table([]string{"rule", "what it finds"}, rows)
	p["lint/README.md"] = list.String()
	return p
}

// example shows a playbook and its related files.
func example(d *document, text string) {
	playbook, files, _ := strings.Cut(text, "-- ")
	d.code("yaml", playbook)
	for _, f := range strings.Split(files, "\n-- ") {
		if name, body, ok := strings.Cut(f, " --\n"); ok {
			d.text("with `" + name + "`:")
			d.code("", body)
		}
	}
}
