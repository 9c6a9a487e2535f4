package engine

import (
	"context"
	"slices"

	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/vars"
)

// CheckHosts returns the problems in the variables of hosts, before the run connects to any of them: files next to
// the playbooks that cannot be read, invalid literals in connection variables, tasks that need all hosts in plays
// where each host runs independently, and missing files on the control node. It checks only hosts that a play is
// certain to connect to: others can be in the inventory for tools that support more connection types. limit is as in
// Options.
func (e *Engine) CheckHosts(ctx context.Context, playbooks []*project.Playbook, limit []string) source.Diagnostics {
	c := checker{e: e, seen: map[string]bool{}}
	c.files = fileCheck{tree: e.Tree, add: c.add}
	e.Limit = limit
	for _, pb := range playbooks {
		for _, p := range pb.Plays {
			c.play(ctx, p)
		}
	}
	return c.ds.Sort()
}

type checker struct {
	e     *Engine
	files fileCheck
	seen  map[string]bool // problems already reported
	ds    source.Diagnostics
}

func (c *checker) add(d *source.Diagnostic) {
	if key := d.Pos.String() + d.Summary; !c.seen[key] {
		c.seen[key] = true
		c.ds.Add(d)
	}
}

func (c *checker) play(ctx context.Context, p *project.Play) {
	for _, d := range c.e.Inventory.LoadVars(p.Dir) {
		c.add(d)
	}
	c.together(p)
	hosts, known := c.e.hostsOf(ctx, p)
	if !known || len(hosts) > 0 {
		control := func(host string) bool { return c.e.isControl(ctx, host, p) }
		c.files.play(p, control, !known || slices.ContainsFunc(hosts, control))
	}
	if !c.e.connects(p) {
		return
	}
	for _, host := range hosts {
		c.host(c.e.View(ctx, host, p, p.Dir))
	}
}

// isControl reports whether a host is, or can be, the machine that kk runs on.
func (e *Engine) isControl(ctx context.Context, host string, p *project.Play) bool {
	v := e.View(ctx, host, p, p.Dir)
	s := e.settings(v, &project.Attrs{}, v)
	address, connection := s.text("ansible_host"), s.connection(host)
	return isLocal(host) || s.err != nil || isLocal(address) || connection != "ssh"
}

// together reports tasks that need all hosts of a play in which each host runs independently.
func (c *checker) together(p *project.Play) {
	free := p.Strategy == nil && c.e.Plays.Free
	if p.Strategy != nil {
		word, _ := p.Strategy.Static()
		strategy, err := playbook.Strategy.Convert(word)
		free = err == nil && strategy != "linear"
	}
	if !free {
		return
	}
	for _, t := range append(Tasks(p), p.Handlers...) {
		if d := notFree(t); d != nil {
			d.Trace = append(d.Trace, t.Trace...)
			c.add(d)
		}
	}
}

// notFree returns the error for a task that cannot run with the strategy free; nil if it can.
func notFree(t *project.Task) *source.Diagnostic {
	if t.Spec == nil || t.Spec.Where != onceForAll {
		return nil
	}
	return source.Errorf(t.At, "%s cannot run with strategy: free", t.Action).
		WithHelp("it does its work once for all hosts: use the linear strategy")
}

// hostsOf returns the hosts of a play, and whether they are known before the run.
func (e *Engine) hostsOf(ctx context.Context, p *project.Play) (hosts []string, known bool) {
	r := &reader{ctx: ctx, v: e.playScope(ctx, &playState{play: p, dir: p.Dir})}
	patterns := r.list(p.Hosts, "hosts")
	if r.err != nil {
		return nil, false
	}
	m, err := e.matched(patterns, p)
	return m.Hosts, err == nil // an error is reported by the play
}

// host checks the variables for which a view has literals.
func (c *checker) host(v *vars.View) {
	mask := v.Watched()
	for i, name := range connectionNames() {
		if mask&(1<<i) == 0 {
			continue
		}
		for _, o := range v.Explain(name) {
			if o.Wins {
				c.variable(name, o)
			}
		}
	}
}

func (c *checker) variable(name string, o vars.Origin) {
	d := project.CheckVariable(name, o.Raw, o.At)
	if d == nil {
		return
	}
	if !o.At.IsValid() {
		d.Summary += " (" + o.Layer + ")"
	}
	c.add(d)
}

// connects reports whether a play is certain to connect to each of its hosts: it gathers facts, or has a task that
// runs on the host whatever its variables are.
func (e *Engine) connects(p *project.Play) bool {
	if p.Setup != nil && gathersSurely(p.GatherFacts, e.Plays.Gathering) {
		return true
	}
	return slices.ContainsFunc(Tasks(p), func(t *project.Task) bool {
		return t.Spec != nil && t.Spec.Where == module.OnHost && len(t.Attrs.When) == 0 && t.Loop == nil &&
			t.Attrs.Value[project.DelegateTo] == nil
	})
}

func gathersSurely(keyword *template.Data, by Gathering) bool {
	if keyword == nil {
		return by == Implicit || by == ""
	}
	v, static := keyword.Static()
	on, err := playbook.Bool.Convert(v)
	return static && err == nil && on == true
}
