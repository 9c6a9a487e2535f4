package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// maxIncludes limits the nesting depth of dynamic includes.
const maxIncludes = 64

// includeRequest is the request of an include on one host, for one item.
type includeRequest struct {
	path  string // for include_tasks
	role  project.RoleRequest
	args  *value.Dict // for include_role
	item  *event.Item
	bound *value.Dict // loop variables
}

func (r *includeRequest) bind(names loopNames, item any, i int) {
	r.bound = value.NewDict(names.item, item, "ansible_loop_var", names.item)
	if names.index != "" {
		r.bound.Set(names.index, i)
	}
}

// key returns a text that differs for requests that cannot share their tasks.
func (r *includeRequest) key() string {
	return fmt.Sprintf("%s|%v|%s", r.path, r.role, value.Repr(r.bound))
}

// requestInclude evaluates the arguments of an include.
func (x *execution) requestInclude(ctx context.Context, v *vars.View, o *itemOutcome) {
	args := any(nil)
	if x.t.Args != nil {
		var err error
		if args, err = x.t.Args.Value(ctx, v); err != nil {
			x.refuse(v, o, undefinedOption(err))
			return
		}
	}
	req, err := x.includeOf(args)
	if err != nil {
		x.refuse(v, o, err)
		return
	}
	req.item = o.item
	o.include = req
	o.status = event.OK
	o.result = req.result()
}

// result returns the value for register: the path of the file, or the arguments of the role.
func (r *includeRequest) result() *value.Dict {
	if r.args != nil {
		return value.NewDict("changed", false, "include_args", r.args)
	}
	return value.NewDict("changed", false, "include", r.path, "include_args", value.NewDict())
}

func (x *execution) includeOf(args any) (*includeRequest, error) {
	req := &includeRequest{}
	dict, _ := args.(*value.Dict)
	if !x.t.Include.Role {
		req.path, _ = args.(string)
		if dict != nil {
			if req.path = dict.String("file"); req.path == "" {
				req.path = dict.String("_raw_params")
			}
		}
		req.path = strings.TrimSpace(strings.TrimPrefix(req.path, "file="))
		if req.path == "" {
			return nil, errors.New("include_tasks needs the path of a file")
		}
		return req, nil
	}
	req.args = dict
	return req, roleRequest(dict, &req.role)
}

func roleRequest(d *value.Dict, r *project.RoleRequest) error {
	for key, field := range map[string]*string{
		"name": &r.Name, "tasks_from": &r.Tasks, "vars_from": &r.Vars,
		"defaults_from": &r.Defaults, "handlers_from": &r.Handlers,
	} {
		v, ok := d.Get(key)
		if !ok && key == "name" {
			v, ok = d.Get("role")
		}
		if !ok || v == nil {
			continue
		}
		s, isText := v.(string)
		if !isText {
			return fmt.Errorf("Expected a string for %s but got %s instead", key,
				value.TypeName(v)) //nolint:staticcheck // users search for this text
		}
		*field = s
	}
	if r.Name == "" {
		return errors.New("'name' is a required field for include_role.")
	}
	var err error
	flag := func(key string, def bool) bool {
		v, ok := d.Get(key)
		if !ok || err != nil {
			return def
		}
		on, bad := converted(playbook.Bool, key, v)
		if bad != nil {
			err = bad
			return false
		}
		return on.(bool)
	}
	r.Public = flag("public", false)
	r.NoDuplicates = !flag("allow_duplicates", true)
	r.Unchecked = !flag("rolespec_validate", true)
	return err
}

// expand adds the tasks that the hosts' includes requested. Hosts with the same request share the tasks. With
// run_once only the host that ran the include runs them.
func (e *Engine) expand(ps *playState, t *project.Task, ev *event.Task, outcomes []*outcome) {
	if t.Include == nil {
		return
	}
	wrapper := &project.Block{}
	blocks := map[string]*includeGroup{}
	var order []*includeGroup
	members := map[*walker]map[*project.Block]bool{}
	for _, o := range outcomes {
		if o.status >= event.Failed && !o.ignored {
			continue
		}
		for i := range o.includes {
			req := &o.includes[i]
			k := req.key()
			g := blocks[k]
			for n := 2; g != nil && g.has[o.walker]; n++ { // the host includes the same file for several items
				k = fmt.Sprintf("%s#%d", req.key(), n)
				g = blocks[k]
			}
			if g == nil {
				g = e.includeGroup(t, req, o.walker)
				blocks[k] = g
				order = append(order, g)
				wrapper.Body = append(wrapper.Body, g.block)
			}
			w := o.walker
			g.has[w] = true
			g.hosts = append(g.hosts, o)
			if members[w] == nil {
				members[w] = map[*project.Block]bool{}
			}
			members[w][g.block] = true
		}
	}
	for _, g := range order {
		e.reportInclude(ps, t, ev, g, members)
	}
	ps.orders++
	for w, only := range members {
		if w.ended || len(only) == 0 {
			continue
		}
		e.enter(ps, w, wrapper, only)
	}
}

// includeGroup is one file or role that is included for some hosts.
type includeGroup struct {
	req   *includeRequest
	block *project.Block
	path  string
	err   error
	hosts []*outcome // hosts that ran the include
	has   map[*walker]bool
}

func (e *Engine) includeGroup(t *project.Task, req *includeRequest, w *walker) *includeGroup {
	g := &includeGroup{req: req, has: map[*walker]bool{}}
	var ds source.Diagnostics
	if t.Include.Role {
		g.block, g.path, ds = e.Linker.IncludeRole(t, req.role)
	} else {
		g.block, g.path, ds = e.Linker.IncludeTasks(t, req.path)
	}
	g.err = ds.Err()
	if f := w.top(); f != nil && f.depth >= maxIncludes {
		g.err = fmt.Errorf("includes nest deeper than %d levels", maxIncludes)
	}
	if g.block == nil {
		g.block = &project.Block{}
	}
	if req.bound != nil {
		g.block.Extra = []*vars.Layer{vars.Values("loop of an include", req.bound)}
	}
	return g
}

// reportInclude emits the included file or role. Hosts whose include failed are marked as failed.
func (e *Engine) reportInclude(ps *playState, t *project.Task, ev *event.Task, g *includeGroup,
	members map[*walker]map[*project.Block]bool) {
	if g.err == nil {
		what := g.path
		if t.Include.Role {
			what = g.req.role.Name
		}
		names := make([]string, len(g.hosts))
		for i, o := range g.hosts {
			names[i] = o.walker.name
			e.stat(o.walker.name).OK++
		}
		e.emit(event.Included{Task: ev, Path: what, Hosts: names, Item: g.req.item})
		return
	}
	for _, of := range g.hosts {
		if members[of.walker] != nil { // else a previous file failed the host
			e.failInclude(ps, t, ev, g, of, members)
		}
	}
}

// failInclude fails the include on a host.
func (e *Engine) failInclude(ps *playState, t *project.Task, ev *event.Task, g *includeGroup, of *outcome,
	members map[*walker]map[*project.Block]bool) {
	w, reason := of.walker, g.err.Error()
	var d *source.Diagnostic
	if errors.As(g.err, &d) && d.Pos == t.At {
		reason = d.Summary // the position is reported with the task
		if d.Help != "" {
			reason += "\n" + d.Help
		}
	}
	result := value.NewDict("changed", false, "failed", true, "msg", reason, "reason", reason)
	o := &outcome{walker: w, task: t, status: event.Failed, result: result}
	o.items = []*itemOutcome{{status: event.Failed, result: result, startedAt: e.Now()}}
	x := &execution{e: e, ps: ps, t: t, w: w, ev: ev, view: e.taskView(context.Background(), ps, t, w)}
	o.ignored, _ = x.flag(x.view, project.IgnoreErrors)
	o.items[0].ignored = o.ignored
	e.report(o, ev)
	delete(members[w], g.block)
	if o.ignored {
		e.count(o)
		return
	}
	of.status = event.Failed
	e.count(o)
	delete(members, w)
	w.top().i-- // back to the include, which fails
	e.failHost(w, t, ev.Name, result)
}

// enter moves a host into the tasks that its include added.
func (e *Engine) enter(ps *playState, w *walker, wrapper *project.Block, only map[*project.Block]bool) {
	f := w.top()
	f.i-- // the included tasks take the place of the include
	inner := w.push(wrapper, wrapper.Body)
	inner.only, inner.order = only, ps.orders
	inner.depth = f.depth + 1
}
