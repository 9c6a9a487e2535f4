// Package lint reports valid constructs in playbooks that are likely to fail or surprise at run time. It inspects
// linked playbooks; nothing is run and no host is contacted.
package lint

import (
	"cmp"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

// Rule is one check of lint.
type Rule struct {
	ID      string // as written in `# noqa: ID`
	Summary string // what is wrong, in a few words
	Why     string // why it matters, and what to do
	// Bad breaks the rule and no other, Good does what it asks: tasks, or whole
	// plays if they begin with "- hosts:".
	Bad, Good string

	check func(*pass)
}

// Rules are all rules, sorted by ID.
func Rules() []Rule {
	rules := slices.Concat(nameRules(), taskRules(), valueRules())
	slices.SortFunc(rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	return rules
}

// Finding is a violation of a rule.
type Finding struct {
	Rule string // "" for problems found when linking: syntax, modules, arguments
	*source.Diagnostic
}

// Input is what Check inspects.
type Input struct {
	Plays []*project.Play
	Watch *Watch // what was recorded when they were linked
	Tree  source.Tree
	// Templates is the engine that compiled the playbooks' templates.
	Templates *template.Engine
	// Modules reports whether a module exists, to suggest it instead of a command.
	Modules *module.Registry
	// Known are names that the inventory and the command line define. Complete is set when an inventory was given:
	// then there are no others.
	Known    []string
	Complete bool
	// Render renders a template file with the variables that a task has on a host of the inventory. It returns an
	// error if they are not known before a run. It may be nil.
	Render func(t *project.Task, tmpl *template.Template) (string, error)
}

// Check applies all rules. Findings are sorted by position. Those that a comment `# noqa` or `# noqa: ID, ID`
// silences are omitted. The comment is on the line of the finding, or on the first line of its task.
func Check(in Input) []Finding {
	p := &pass{Input: in, seen: map[string]bool{}}
	p.tasks = in.Watch.distinct()
	for _, r := range Rules() {
		p.rule = r.ID
		r.check(p)
	}
	return Sort(p.found)
}

// Linked returns the diagnostics of linking as findings. Warnings that belong to a rule can be silenced.
func Linked(ds source.Diagnostics) []Finding {
	var out []Finding
	for _, d := range ds {
		if d.Rule == "" || d.Severity == source.Error || !silenced(d.Pos, d.Rule) {
			out = append(out, Finding{d.Rule, d})
		}
	}
	return out
}

// Sort sorts findings by position, then by rule.
func Sort(found []Finding) []Finding {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(fileOf(a.Pos), fileOf(b.Pos)), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col), cmp.Compare(a.Rule, b.Rule))
	})
	return found
}

func fileOf(p source.Pos) string {
	if p.File == nil {
		return ""
	}
	return p.File.Name
}

// pass is one run of the rules.
type pass struct {
	Input
	rule  string
	tasks []*project.Task
	found []Finding
	seen  map[string]bool
}

// report adds a finding, once per position. task is the task it belongs to; it may be nil.
func (p *pass) report(task *project.Task, at source.Pos, width int, help, format string, args ...any) {
	if !at.IsValid() || at.File.Bundled() {
		return
	}
	d := source.Warningf(at, format, args...)
	d.Help, d.Width = help, width
	key := p.rule + d.Error()
	if p.seen[key] || silenced(at, p.rule) || task != nil && silenced(task.At, p.rule) {
		return
	}
	p.seen[key] = true
	p.found = append(p.found, Finding{p.rule, d})
}

// silenced reports whether the line has a comment that silences the rule.
func silenced(at source.Pos, rule string) bool {
	if !at.IsValid() {
		return false
	}
	_, rest, ok := strings.Cut(at.File.Line(at.Line), "# noqa")
	if !ok {
		return false
	}
	rest = strings.TrimSpace(rest)
	if !strings.HasPrefix(rest, ":") {
		return true
	}
	ids := strings.FieldsFunc(rest[1:], func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(ids, rule)
}
