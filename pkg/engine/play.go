package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/engine/strategy"
	"kubekey/pkg/event"
	"kubekey/pkg/inventory"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// playState is the state of one batch of a play.
type playState struct {
	play  *project.Play
	name  string
	dir   string
	hosts []string // hosts of the play, in all batches
	batch []string

	prompts   []*vars.Layer // answers to vars_prompt
	walkers   []*walker
	flushed   *project.Block // block of the frames that flush handlers
	free      bool
	pinned    bool    // with the strategy free: a host that has started runs to its end before another one starts
	maxFail   float64 // in percent; negative is no limit
	force     bool
	endPlay   bool
	abort     bool                   // any_errors_fatal or max_fail_percentage ended the run
	startFrom map[*project.Task]bool // tasks before --start-at-task, which are skipped
	orders    int
}

// play runs a play, batch by batch. goOn is false when the run must end.
func (e *Engine) play(ctx context.Context, p *project.Play) (goOn bool, err error) {
	ps := &playState{play: p, dir: p.Dir}
	if ps.prompts, err = e.prompts(ctx, p); err != nil {
		return false, err
	}
	r := &reader{ctx: ctx, v: e.playScope(ctx, ps)}
	patterns := r.list(p.Hosts, "hosts")
	ps.name = r.text(compiled(p.Name, e), "name")
	if ps.name == "" {
		ps.name = strings.Join(patterns, ",")
	}
	if r.err != nil {
		return false, r.err
	}
	all, err := e.match(patterns, p)
	if err != nil {
		return false, err
	}
	if len(all) > 0 {
		e.started = true
	}
	live := e.alive(all)
	if len(all) == 0 {
		e.emit(event.PlayStarted{Name: ps.name, At: p.Syntax.At})
		e.emit(event.PlayEmpty{Name: ps.name})
		return true, nil
	}
	if len(live) == 0 {
		return true, nil
	}
	ps.hosts = strategy.Order(live, r.word(p.Order, "order"), e.RunID)
	named := r.word(p.Strategy, "strategy")
	ps.pinned = named == "host_pinned"
	ps.free = named == "free" || ps.pinned || named == "" && e.Plays.Free
	ps.maxFail = -1
	if share, ok := r.typed(p.MaxFail, "max_fail_percentage").(float64); ok {
		ps.maxFail = share
	}
	ps.force = e.ForceHandlers
	if p.Force != nil {
		ps.force = r.flag(p.Force, "force_handlers")
	}
	goOnAfterBatch := r.flag(p.Continue, "serial_continue_on_batch_failure")
	batches := strategy.Batches(ps.hosts, r.batchSizes(p.Serial, len(ps.hosts)))
	if r.err != nil {
		return false, r.err
	}
	e.emit(event.PlayStarted{Name: ps.name, Hosts: ps.hosts, At: p.Syntax.At})
	defer e.emit(event.PlayEnded{Name: ps.name})
	defer e.flushDeferred(ctx)
	if e.StartAt != "" && !e.startFound {
		if ps.startFrom, e.startFound = before(p, e.StartAt); !e.startFound {
			return true, nil
		}
	}
	begun := 0
	for _, batch := range batches {
		b := *ps
		b.batch = e.alive(batch)
		if len(b.batch) == 0 {
			continue
		}
		if begun++; begun > 1 {
			e.emit(event.BatchStarted{Name: ps.name, Number: begun, Hosts: b.batch, At: p.Syntax.At})
		}
		if err := e.runBatch(ctx, &b); err != nil || ctx.Err() != nil {
			return false, err
		}
		if b.abort {
			return false, nil
		}
		if len(e.alive(b.batch)) == 0 && !goOnAfterBatch {
			return false, nil
		}
		if b.endPlay {
			break
		}
	}
	return !e.ended, nil
}

// playScope returns the variables of a play that do not depend on a host.
func (e *Engine) playScope(ctx context.Context, ps *playState) *vars.View {
	own := ps.play.Static.Play
	return e.scope.New(ctx, "", nil, nil, vars.Static{Play: append(own[:len(own):len(own)], ps.prompts...)}, nil)
}

// match returns the hosts of a play and warns about patterns that match nothing.
func (e *Engine) match(patterns []string, p *project.Play) ([]string, error) {
	m, err := e.matched(patterns, p)
	if err != nil {
		return nil, err
	}
	for _, u := range m.Unmatched {
		d := source.Warningf(p.Syntax.Hosts.At(), "Could not match supplied host pattern, ignoring: %s", u.Pattern)
		if u.Near != "" {
			d.Help = fmt.Sprintf("did you mean %q?", u.Near)
		}
		e.emit(event.Warning{Diagnostic: d})
	}
	return m.Hosts, nil
}

// matched returns the hosts of a play that --limit selects.
func (e *Engine) matched(patterns []string, p *project.Play) (inventory.Matched, error) {
	m, err := e.Inventory.Match(patterns, inventory.MatchOptions{RunID: e.RunID})
	if err != nil {
		return m, fmt.Errorf("%s: hosts: %w", p.Syntax.At, err)
	}
	if e.Limit != nil {
		m.Hosts = slices.DeleteFunc(m.Hosts, func(h string) bool { return !slices.Contains(e.Limit, h) })
	}
	return m, nil
}

// before returns the tasks of a play that --start-at-task skips.
func before(p *project.Play, name string) (map[*project.Task]bool, bool) {
	out := map[*project.Task]bool{}
	for _, t := range Tasks(p) {
		if matchesName(t, name) {
			return out, true
		}
		out[t] = true
	}
	return nil, false
}

// Tasks returns the tasks of a play that are known before it runs, in order.
func Tasks(p *project.Play) []*project.Task {
	var out []*project.Task
	var walk func(steps []project.Step)
	walk = func(steps []project.Step) {
		for _, s := range steps {
			switch s := s.(type) {
			case *project.Task:
				out = append(out, s)
			case *project.Block:
				walk(s.Body)
				walk(s.Rescue)
				walk(s.Always)
			}
		}
	}
	walk(p.Pre)
	walk(p.Main)
	walk(p.Post)
	return out
}

// TaskName returns the name of a task as written in the playbook; in a role it is "role : name".
func TaskName(t *project.Task) string {
	role, name := title(t)
	if role != "" {
		name = role + " : " + name
	}
	return name
}

// title returns the role and the name of a task for a banner. The role is the one that contains the task; for
// include_role it is the role that is included. The name is as written in the playbook.
func title(t *project.Task) (role, name string) {
	name = t.Syntax.Name
	switch {
	case t.Include != nil && t.Include.Role:
		if name == "" {
			name = t.Action + " : " + t.Include.RoleName()
		}
		return "", name
	case name == "":
		name = t.Action
	}
	if t.Role != nil {
		role = t.Role.Name
	}
	return role, name
}

func matchesName(t *project.Task, want string) bool {
	for _, name := range []string{TaskName(t), t.Syntax.Name} {
		if name == want || name != "" && glob(want, name) {
			return true
		}
	}
	return false
}

// reader evaluates the fields of a play. They do not depend on a host.
type reader struct {
	ctx context.Context
	v   *vars.View
	err error
}

func (r *reader) value(d *template.Data, what string) any {
	if d == nil {
		return nil
	}
	v, err := d.Value(r.ctx, r.v)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("the play's %s: %w", what, err)
	}
	return v
}

func (r *reader) text(d *template.Data, what string) string { return value.Str(r.value(d, what)) }

// typed evaluates a field and converts it to the type of its keyword. It returns nil when the field is not set or is
// empty.
func (r *reader) typed(d *template.Data, what string) any {
	v := r.value(d, what)
	if v == nil || v == "" {
		return nil
	}
	return r.convert(playbook.TypeOf(what), v, what)
}

func (r *reader) convert(t playbook.Type, v any, what string) any {
	out, err := converted(t, what, v)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("the play's %w", err)
	}
	return out
}

// word evaluates a field that accepts a fixed set of words; "" is the default.
func (r *reader) word(d *template.Data, what string) string {
	word, _ := r.typed(d, what).(string)
	return word
}

func (r *reader) flag(d *template.Data, what string) bool {
	v := r.value(d, what)
	if v == nil {
		return false
	}
	on, _ := r.convert(playbook.Bool, v, what).(bool)
	return on
}

func (r *reader) list(d *template.Data, what string) []string {
	v := r.value(d, what)
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, e := range list {
		if s := strings.TrimSpace(value.Str(e)); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// batchSizes returns the batch sizes that serial specifies for a number of hosts.
func (r *reader) batchSizes(serial []*template.Data, hosts int) []int {
	var sizes []int
	for _, d := range serial {
		v := r.value(d, "serial")
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, e := range list {
			sizes = append(sizes, r.batchSize(e, hosts))
		}
	}
	return sizes
}

func (r *reader) batchSize(v any, hosts int) int {
	size := r.convert(playbook.Batch, v, "serial")
	if share, ok := size.(playbook.Share); ok {
		return max(1, int(min(float64(share), 100)*float64(hosts)/100))
	}
	n, _ := size.(int)
	return n
}

// runBatch runs the play on one batch.
func (e *Engine) runBatch(ctx context.Context, ps *playState) error {
	ps.flushed = &project.Block{Name: "handlers"}
	steps := e.playSteps(ctx, ps)
	root := &project.Block{Body: steps}
	for _, name := range ps.batch {
		e.recall(name)
		w := &walker{name: name, host: e.host(name), run: e.standing, notified: map[*project.Task]bool{},
			once: map[string]bool{}}
		if p := w.push(root, steps); e.knows(w.host) && len(steps) > 0 && steps[0] == project.Step(ps.play.Setup) {
			p.i++
		}
		ps.walkers = append(ps.walkers, w)
	}
	if err := e.varsFiles(ctx, ps); err != nil {
		return err
	}
	if err := e.runHosts(ctx, ps); err != nil {
		return err
	}
	for _, w := range ps.walkers {
		ps.abort = ps.abort || w.fatal && (w.failed || w.lost)
	}
	if ctx.Err() == nil && (ps.abort || len(e.alive(ps.batch)) == 0) {
		e.emit(event.NoMoreHosts{Aborted: ps.abort})
	}
	return nil
}

// playSteps returns the play as one list of steps: fact gathering, the sections, and handler flushes between them.
func (e *Engine) playSteps(ctx context.Context, ps *playState) []project.Step {
	p := ps.play
	var steps []project.Step
	if p.Setup != nil && e.gathers(ctx, ps) {
		steps = append(steps, p.Setup)
	}
	section := func(body []project.Step) {
		flush := &project.Task{Meta: "flush_handlers", Hidden: true, Play: p, Action: "meta", Syntax: &playbook.Task{},
			At: p.Syntax.At}
		if ps.force && len(body) > 0 {
			steps = append(steps, &project.Block{Body: body, Always: []project.Step{flush}})
			return
		}
		steps = append(append(steps, body...), flush)
	}
	section(p.Pre)
	section(p.Main)
	section(p.Post)
	return steps
}

func (e *Engine) gathers(ctx context.Context, ps *playState) bool {
	p := ps.play
	if p.GatherFacts == nil {
		return e.Plays.Gathering != Explicit
	}
	v, err := p.GatherFacts.Value(ctx, e.playScope(ctx, ps))
	if err != nil {
		return true
	}
	on, err := playbook.Bool.Convert(v)
	return err != nil || on.(bool)
}

// varsFiles loads the vars_files of a play for each host. The file names can depend on the host's variables.
func (e *Engine) varsFiles(ctx context.Context, ps *playState) error {
	if len(ps.play.VarsFiles) == 0 && len(ps.prompts) == 0 {
		return nil
	}
	for _, w := range ps.walkers {
		if err := e.loadVarsFiles(ctx, ps, w); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) loadVarsFiles(ctx context.Context, ps *playState, w *walker) error {
	p := ps.play
	w.host.SetFiles(p, ps.prompts)
	view := e.scope.New(ctx, w.name, w.host, e.inventoryLayers(w.name, p.Dir), p.Static, p)
	view.Task = &here{e: e, play: ps}
	layers := slices.Clone(ps.prompts)
	for i, candidates := range p.VarsFiles {
		var tried []string
		found := false
		for _, c := range candidates {
			v, err := c.Value(ctx, view)
			if isUndefined(err) {
				found = true // the name can depend on facts that are not gathered yet
				continue
			}
			if err != nil {
				return err
			}
			path, ok := e.Linker.FindVarsFile(p, value.Str(v))
			if !ok {
				tried = append(tried, value.Str(v))
				continue
			}
			layer, ds := e.Linker.VarsFile(path)
			if err := ds.Err(); err != nil {
				return err
			}
			layers, found = append(layers, layer), true
			break
		}
		if !found {
			return fmt.Errorf("%s: vars file %s was not found", p.VarsFilesAt[i], strings.Join(tried, ", "))
		}
	}
	w.host.SetFiles(p, layers)
	return nil
}
