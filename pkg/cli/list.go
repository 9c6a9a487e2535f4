package cli

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"kubekey/pkg/engine"
	"kubekey/pkg/inventory"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// list prints the content of the playbooks for --list-* and --syntax-check.
func (a *app) list(ctx context.Context, r *runFlags, s *session, books []*project.Playbook, limit []string) error {
	for _, pb := range books {
		fmt.Fprintln(a.Out)
		a.row("playbook: %s", source.Shown(pb.Path))
		if r.syntaxCheck && !r.listHosts && !r.listTasks && !r.listTags {
			continue
		}
		for i, p := range pb.Plays {
			patterns, err := playPatterns(ctx, s, p)
			if err != nil {
				return &exitError{engine.ExitInput, err}
			}
			name := p.Name
			if name == "" {
				name = strings.Join(patterns, ",")
			}
			fmt.Fprintln(a.Out)
			a.row("  play #%d (%s): %s\tTAGS: [%s]", i+1, strings.Join(patterns, ","), name, strings.Join(p.Attrs.Tags, ","))
			if r.listHosts {
				if err := a.listHosts(s, patterns, limit); err != nil {
					return err
				}
			}
			if r.listTasks {
				a.listTasks(p)
			}
			if r.listTags {
				a.row("      TASK TAGS: [%s]", strings.Join(allTags(p), ", "))
			}
		}
	}
	return nil
}

func playPatterns(ctx context.Context, s *session, p *project.Play) ([]string, error) {
	scope := &vars.Scope{Extra: s.extra, Engine: s.templates}
	v, err := p.Hosts.Value(ctx, scope.New(ctx, "", nil, nil, vars.Static{Play: p.Static.Play}, nil))
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = value.Str(e)
	}
	return out, nil
}

func (a *app) listHosts(s *session, patterns, limit []string) error {
	m, err := s.inventory.Match(patterns, inventory.MatchOptions{RunID: s.id})
	if err != nil {
		return &exitError{engine.ExitInput, err}
	}
	hosts := m.Hosts
	if limit != nil {
		hosts = slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return !slices.Contains(limit, h) })
	}
	for _, u := range m.Unmatched {
		a.warn("Could not match supplied host pattern, ignoring: %s", u.Pattern)
	}
	fmt.Fprintf(a.Out, "    pattern: %s\n    hosts (%d):\n", value.Repr(value.Of(patterns)), len(hosts))
	for _, h := range hosts {
		a.row("      %s", h)
	}
	return nil
}

func (a *app) listTasks(p *project.Play) {
	fmt.Fprintln(a.Out, "    tasks:")
	for _, t := range expected(p) {
		name := t.Syntax.Name
		switch {
		case name == "":
			name = t.Syntax.Module
		case t.Role != nil && (t.Include == nil || !t.Include.Role):
			name = t.Role.Name + " : " + name
		}
		a.row("      %s\tTAGS: [%s]", name, strings.Join(sorted(t.Attrs.Tags), ", "))
	}
}

// expected returns the tasks that Ansible lists: those that run when nothing fails.
func expected(p *project.Play) []*project.Task {
	var out []*project.Task
	var walk func(steps []project.Step)
	walk = func(steps []project.Step) {
		for _, s := range steps {
			switch s := s.(type) {
			case *project.Task:
				if !s.Hidden {
					out = append(out, s)
				}
			case *project.Block:
				walk(s.Body)
			}
		}
	}
	walk(slices.Concat(p.Pre, p.Main, p.Post))
	return out
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	sort.Strings(out)
	return out
}

func allTags(p *project.Play) []string {
	seen := map[string]bool{}
	for _, t := range expected(p) {
		for _, tag := range t.Attrs.Tags {
			seen[tag] = true
		}
	}
	for _, tag := range p.Attrs.Tags {
		seen[tag] = true
	}
	out := make([]string, 0, len(seen))
	for tag := range seen {
		out = append(out, tag)
	}
	sort.Strings(out)
	return out
}
