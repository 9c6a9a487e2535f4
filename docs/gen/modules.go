package main

import (
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

// modulePages returns a page per module, and their index.
func modulePages(specs []*module.Spec) (pages, error) {
	p := pages{}
	var rows [][]string
	for _, s := range specs {
		text, err := modulePage(s)
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", s.Name, err)
		}
		p["modules/"+s.Name+".md"] = text
		name := fmt.Sprintf("[%s](%s.md)", s.Name, s.Name)
		if len(s.Aliases) > 0 {
			name += " (" + strings.Join(s.Aliases, ", ") + ")"
		}
		rows = append(rows, []string{name, plain(s.Summary)})
	}
	d := newDocument("Modules")
	d.text("`kk doc NAME` prints the same for the kk at hand. A module answers to its plain name and to its full one: " +
		"`copy`, `ansible.builtin.copy`, `kk.copy`; the page says so where its collection is not ansible.builtin.")
	d.table([]string{"module", "what it does"}, rows)
	p["modules/README.md"] = d.String()
	return p, nil
}

func modulePage(s *module.Spec) (string, error) {
	d := newDocument(s.Name)
	d.text(plain(s.Summary))
	if len(s.Aliases) > 0 {
		d.line("Also named: %s.", quotedList(s.Aliases))
	}
	if s.Collection != "" {
		d.line("Full name: %s.", quoted(s.FullName(s.Name)))
	}
	for _, n := range s.Notes {
		d.text(sentence(n))
	}
	d.text("## Arguments")
	if err := arguments(d, s); err != nil {
		return "", err
	}
	if err := rules(d, s); err != nil {
		return "", err
	}
	d.text("## Behaviour")
	for _, b := range behaviour(s) {
		d.text(b)
	}
	if len(s.Returns) > 0 {
		d.text("## Returns")
		returns(d, s.Returns)
	}
	if len(s.Examples) > 0 {
		d.text("## Examples")
		for _, e := range s.Examples {
			d.code("yaml", e)
		}
	}
	return d.String(), nil
}

func arguments(d *document, s *module.Spec) error {
	var args []schema.Arg
	if s.New != nil {
		var err error
		if args, err = schema.Describe(s.New()); err != nil {
			return err
		}
	}
	if rows := argumentRows(args, ""); len(rows) > 0 {
		d.table([]string{"argument", "type", "default", "meaning"}, rows)
	}
	switch {
	case s.AnyArgs && len(args) == 0:
		d.text("It takes arguments of any name.")
	case s.AnyArgs:
		d.text("It takes arguments of any other name too.")
	case len(args) == 0:
		d.text("It takes none.")
	}
	if s.FreeForm != "" {
		d.line("In `%s: TEXT`, the text is the argument %s.", s.Name, quoted(s.FreeForm))
	}
	if len(s.RawArgs) > 0 {
		d.line("It evaluates %s itself: write expressions without `{{ }}`.", quotedList(s.RawArgs))
	}
	return nil
}

// rules describes the conditions between arguments and for their values.
func rules(d *document, s *module.Spec) error {
	if s.New == nil {
		return nil
	}
	all, err := schema.DescribeRules(s.New())
	if err != nil || len(all) == 0 {
		return err
	}
	d.text("### Rules")
	d.text("They are checked before the first connection where values are literal, and else before the task runs on a " +
		"host.")
	d.text("- " + strings.Join(all, ".\n- ") + ".")
	return nil
}

// argumentRows lists arguments, required ones first. Suboptions follow their option.
func argumentRows(args []schema.Arg, prefix string) [][]string {
	args = slices.Clone(args)
	slices.SortStableFunc(args, func(a, b schema.Arg) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	var rows [][]string
	for _, a := range args {
		rows = append(rows, argumentRow(a, prefix))
		rows = append(rows, argumentRows(a.Options, prefix+a.Name+".")...)
	}
	return rows
}

func argumentRow(a schema.Arg, prefix string) []string {
	meaning := sentence(plain(a.Doc))
	if len(a.Choices) > 0 {
		meaning += " One of " + quotedList(a.Choices) + "."
	}
	if len(a.Aliases) > 0 {
		meaning += " Also " + quotedList(a.Aliases) + "."
	}
	preset := ""
	switch {
	case a.Required:
		preset = "**required**"
	case a.Default != "":
		preset = quoted(a.Default)
	}
	return []string{quoted(prefix + a.Name), a.Type, preset, strings.TrimSpace(meaning)}
}

// behaviour describes where a module runs and what it does with --check.
func behaviour(s *module.Spec) []string {
	if s.Action {
		return []string{"The engine does this itself; no host is contacted for it."}
	}
	where := "It runs on the host."
	switch s.Where {
	case module.OnControl:
		where = "It runs on the control node, for each host; the host is not contacted."
	case module.Once:
		where = "It runs on the control node, once for all hosts of a batch."
	}
	return []string{where, checkMode(s)}
}

func checkMode(s *module.Spec) string {
	switch s.Check {
	case module.Skips:
		if s.CheckSkipMsg == "" {
			return "Check mode: it is not run; the task is skipped."
		}
		return "Check mode: it is not run; the task is skipped, with the message " + quoted(s.CheckSkipMsg) + "."
	case module.Harmless:
		return "Check mode: it runs as ever, for it changes nothing on the host."
	}
	return "Check mode: it says what it would change, and changes nothing."
}

func returns(d *document, keys []module.Return) {
	rows := make([][]string, len(keys))
	for i, r := range keys {
		rows[i] = []string{quoted(r.Key), r.Type, sentence(plain(r.Doc))}
	}
	d.text("Beside `changed`, `failed`, `skipped` and `msg`, which every result may have:")
	d.table([]string{"key", "type", "meaning"}, rows)
}
