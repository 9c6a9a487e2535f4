package vars

import (
	"context"
	"errors"
	"strings"
	"sync"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// Static is the set of layers that a place in a playbook sees, for any host. Each list is in order of precedence,
// lowest first.
type Static struct {
	Low    []*Layer // defaults of the task's role and of the roles that contain it
	Play   []*Layer // play vars
	Mid    []*Layer // role vars, block vars, task vars
	High   []*Layer // role and include parameters
	Public *Public  // layers of the play's roles that every task sees; may be nil
}

// Public has the defaults and vars of a play's roles that are visible to all of its tasks. A public include_role adds
// to it.
type Public struct {
	mu       sync.RWMutex
	defaults []*Layer
	vars     []*Layer
}

// Add adds the layers of one more role.
func (p *Public) Add(defaults, vars []*Layer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.defaults = extend(p.defaults, defaults)
	p.vars = extend(p.vars, vars)
}

func (p *Public) layers() (defaults, vars []*Layer) {
	if p == nil {
		return nil, nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.defaults, p.vars
}

// With returns s with more layers. It does not modify s.
func (s Static) With(low, mid, high []*Layer) Static {
	s.Low = extend(s.Low, low)
	s.Mid = extend(s.Mid, mid)
	s.High = extend(s.High, high)
	return s
}

func extend(a, b []*Layer) []*Layer {
	if len(b) == 0 {
		return a
	}
	return append(a[:len(a):len(a)], b...)
}

// Magic provides variables that no layer contains and none overrides: inventory_hostname, groups, hostvars, ...
type Magic interface {
	Magic(name string, v *View) (val any, ok bool, err error)
	MagicNames() []string
}

// Scope is shared by all views of a run.
type Scope struct {
	Extra  []*Layer // --config, then -e and --set: highest precedence
	Magic  Magic
	Engine *template.Engine
	Watch  *Watch // required for View.Watched only
	Merge  bool   // merge dictionaries of the same name from all levels of precedence
	// Secrets collects the values of templates whose variables have names of secrets; may be nil.
	Secrets  *redact.Set
	Fallback Fallback // may be nil
}

// Fallback provides values for names that are in no layer.
type Fallback interface {
	Fallback(name string, v *View) (val any, ok bool)
	FallbackNames() []string
}

// View is the set of variables of one host at one place. It implements expr.Binder. A view belongs to one goroutine.
type View struct {
	ctx       context.Context
	scope     *Scope
	host      string
	static    Static
	inventory []*Layer
	learned   *Host
	files     []*Layer
	defaults  []*Layer // of public roles
	roleVars  []*Layer // of public roles
	local     *locals
	memo      map[string]any
	chain     *link
	Task      any // the place of the view, for Magic
}

// locals is a list of names that a loop, a retry or a template binds.
type locals struct {
	name     string
	v        any
	included bool           // set by include_vars: v can contain templates
	authored *template.Data // source that v was evaluated from; nil if v is data
	parent   *locals
}

// link is a variable that is being evaluated.
type link struct {
	host, name string
	depth      int
	parent     *link
}

// maxChain limits the depth of references between variables.
const maxChain = 150

// New creates the view of a host. play is the key that the vars_files were stored under.
func (s *Scope) New(ctx context.Context, host string, h *Host, inventory []*Layer, static Static, play any) *View {
	v := &View{ctx: ctx, scope: s, host: host, static: static, inventory: inventory, learned: h}
	v.defaults, v.roleVars = static.Public.layers()
	if h != nil {
		v.files, _ = h.Files(play)
	}
	return v
}

// Host returns the name of the host.
func (v *View) Host() string { return v.host }

// Context returns the context for the evaluation of templates.
func (v *View) Context() context.Context { return v.ctx }

// Beneath makes v part of the evaluation in parent, so that cycles across several hosts are detected.
func (v *View) Beneath(parent *View) *View {
	v.chain = parent.chain
	return v
}

// WorksOut reports whether v is used while it evaluates the variable name itself.
func (v *View) WorksOut(name string) bool {
	return v.chain != nil && v.chain.name == name && v.chain.host == v.host
}

// Sharing gives v the local names of another view: the item of a loop is also visible on the host that a task is
// delegated to.
func (v *View) Sharing(with *View) *View {
	v.local, v.memo = with.local, nil
	return v
}

// With returns a view with one more local name, which overrides all others.
func (v *View) With(name string, val any) *View {
	out := *v
	out.memo = nil
	out.local = &locals{name: name, v: val, parent: v.local}
	return &out
}

// WithIncluded is With for a variable of include_vars, which can contain templates.
func (v *View) WithIncluded(name string, val any) *View {
	out := v.With(name, val)
	out.local.included = true
	return out
}

// WithAuthored is With for an item of a loop. authored is the item as written in a playbook or variables file; nil if
// it is data.
func (v *View) WithAuthored(name string, val any, authored *template.Data) *View {
	out := v.With(name, val)
	out.local.authored = authored
	return out
}

// Fork returns a view of the same variables for another goroutine.
func (v *View) Fork() *View {
	out := *v
	out.memo, out.chain = nil, nil
	return &out
}

// Bind implements expr.Binder. It sets the name in this view only.
func (v *View) Bind(name string, val any) {
	v.local = &locals{name: name, v: val, parent: v.local}
	v.memo = nil
}

// localValue returns plain data in val or templates in d.
func (v *View) localValue(name string) (val any, d *template.Data, ok bool, err error) {
	for l := v.local; l != nil; l = l.parent {
		switch {
		case l.name != name:
		case l.included:
			val, d, _, ok, err = v.included(l.v)
			return val, d, ok, err
		default:
			return l.v, nil, true, nil
		}
	}
	return nil, nil, false, nil
}

// Lookup implements expr.Scope.
func (v *View) Lookup(name string) (any, bool, error) {
	if val, d, ok, err := v.localValue(name); ok || err != nil {
		if known, worked := v.memo[name]; worked && d != nil {
			return known, true, nil
		}
		return v.resolve(name, val, d, ok, err)
	}
	if v.scope.Magic != nil {
		if val, ok, err := v.scope.Magic.Magic(name, v); ok || err != nil {
			return val, ok, err
		}
	}
	if val, ok := v.memo[name]; ok {
		return val, true, nil
	}
	val, ok, err := v.layered(name)
	if !ok && err == nil && v.scope.Fallback != nil {
		val, ok = v.scope.Fallback.Fallback(name, v)
	}
	return val, ok, err
}

// Authored implements expr.Author. Output of hosts, facts, results and magic variables are data.
func (v *View) Authored(name string) (any, bool) {
	for l := v.local; l != nil; l = l.parent {
		if l.name != name {
			continue
		}
		if l.included {
			d, err := v.scope.Engine.Data(l.v, source.Pos{})
			return d, err == nil
		}
		return l.authored, l.authored != nil
	}
	if v.scope.Magic != nil {
		if _, ok, err := v.scope.Magic.Magic(name, v); ok || err != nil {
			return nil, false
		}
	}
	d := v.authoredInLayers(name)
	return d, d != nil && !(v.scope.Merge && d.IsMapping()) // merged dictionaries have no source
}

func (v *View) authoredInLayers(name string) *template.Data {
	for level := range levelCount {
		if val, ok := v.learned.get(level, name); ok {
			if level != levelIncluded {
				return nil
			}
			d, err := v.scope.Engine.Data(val, source.Pos{})
			if err != nil {
				return nil
			}
			return d
		}
		layers := v.layers(level)
		for i := len(layers) - 1; i >= 0; i-- {
			val, d, ok, err := layers[i].get(name)
			switch {
			case err != nil || ok && layers[i].literal:
				return nil
			case ok && d == nil:
				return template.Literal(val)
			case ok:
				return d
			}
		}
	}
	return nil
}

// AuthoredMember implements expr.Author.
func (v *View) AuthoredMember(of, key any) (any, bool) {
	d, ok := of.(*template.Data)
	if !ok {
		return nil, false
	}
	return d.Authored(v.ctx, v).Member(key)
}

// layered returns the value of a name in the layers.
func (v *View) layered(name string) (any, bool, error) {
	if v.scope.Merge {
		return v.merge(name)
	}
	val, d, _, ok, err := v.find(name)
	return v.resolve(name, val, d, ok, err)
}

// resolve evaluates the templates of a value, if there are any.
func (v *View) resolve(name string, val any, d *template.Data, ok bool, err error) (any, bool, error) {
	if err != nil || !ok || d == nil {
		return val, ok, err
	}
	return v.expand(name, d)
}

// find returns plain data in val or templates in d, and the layer.
func (v *View) find(name string) (val any, d *template.Data, from *Layer, ok bool, err error) {
	for i := range levelCount {
		if val, ok = v.learned.get(i, name); ok {
			if i != levelIncluded {
				return val, nil, nil, true, nil
			}
			return v.included(val)
		}
		layers := v.layers(i)
		for j := len(layers) - 1; j >= 0; j-- {
			if val, d, ok, err = layers[j].get(name); ok {
				return val, d, layers[j], ok, err
			}
		}
	}
	return nil, nil, nil, false, nil
}

// included compiles a variable of include_vars, which can be a template.
func (v *View) included(val any) (any, *template.Data, *Layer, bool, error) {
	d, err := v.scope.Engine.Data(val, source.Pos{})
	if err != nil {
		return nil, nil, nil, true, err
	}
	if plain, static := d.Static(); static {
		return plain, nil, nil, true, nil
	}
	return nil, d, nil, true, nil
}

// The levels of precedence, highest first.
const (
	levelExtra = iota
	levelHigh
	levelSet
	levelIncluded
	levelMid
	levelRoles
	levelFiles
	levelPlay
	levelFacts
	levelInventory
	levelLow
	levelDefaults
	levelCount
)

// layers returns the layers of a level. The levels of learned variables have none.
func (v *View) layers(level int) []*Layer {
	switch level {
	case levelExtra:
		return v.scope.Extra
	case levelHigh:
		return v.static.High
	case levelMid:
		return v.static.Mid
	case levelRoles:
		return v.roleVars
	case levelFiles:
		return v.files
	case levelPlay:
		return v.static.Play
	case levelInventory:
		return v.inventory
	case levelLow:
		return v.static.Low
	case levelDefaults:
		return v.defaults
	}
	return nil
}

// expand evaluates the templates of a variable. The members of a container are evaluated one at a time.
func (v *View) expand(name string, d *template.Data) (any, bool, error) {
	for l := v.chain; l != nil; l = l.parent {
		if l.name == name && l.host == v.host {
			return nil, true, v.cycle(name)
		}
	}
	depth := 0
	if v.chain != nil {
		depth = v.chain.depth + 1
	}
	if depth > maxChain {
		return nil, true, v.cycle(name)
	}
	if d.IsContainer() {
		return &container{v: v, d: d, name: name}, true, nil
	}
	val, err := v.evaluate(name, d)
	if err != nil {
		return undefined(name, err)
	}
	v.remember(name, val)
	return val, true, nil
}

func (v *View) evaluate(name string, d *template.Data) (any, error) {
	before := v.chain
	depth := 0
	if before != nil {
		depth = before.depth + 1
	}
	v.chain = &link{host: v.host, name: name, depth: depth, parent: before}
	defer func() { v.chain = before }()
	val, err := d.Value(v.ctx, v)
	if v.scope.Secrets != nil {
		v.scope.Secrets.AddNamed(value.Named(redact.NameOf(name), val, redact.Within))
	}
	return val, err
}

func (v *View) remember(name string, val any) {
	if v.memo == nil {
		v.memo = map[string]any{}
	}
	v.memo[name] = val
}

// undefined returns an undefined value if the template of a variable refers to an undefined name, so that default()
// can replace it.
func undefined(name string, err error) (any, bool, error) {
	var u *value.Undefined
	var cyc *CycleError
	if errors.As(err, &u) && !errors.As(err, &cyc) {
		return &value.Undefined{Name: name, Err: err}, true, nil
	}
	return nil, true, err
}

// CycleError reports variables that are defined by each other.
type CycleError struct{ Names []string }

func (e *CycleError) Error() string {
	return "recursive loop detected in template string: " + strings.Join(e.Names, " -> ")
}

func (v *View) cycle(name string) error {
	names := []string{name}
	for l := v.chain; l != nil; l = l.parent {
		names = append(names, l.name)
		if l.name == name || len(names) > 12 {
			break
		}
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return &CycleError{names}
}

// Origin is one layer that contains a variable.
type Origin struct {
	Layer string
	At    source.Pos
	Raw   any
	Wins  bool // it is the value, or a part of it if dictionaries are merged
}

// Explain returns every layer that contains the name, the one in effect first.
func (v *View) Explain(name string) []Origin {
	var out []Origin
	add := func(layer string, at source.Pos, raw any) {
		wins := len(out) == 0
		if _, dict := raw.(*value.Dict); v.scope.Merge && dict && !wins {
			last := out[len(out)-1]
			_, over := last.Raw.(*value.Dict)
			wins = last.Wins && over
		}
		out = append(out, Origin{layer, at, raw, wins})
	}
	if v.scope.Magic != nil {
		if val, ok, err := v.scope.Magic.Magic(name, v); ok && err == nil {
			add("magic variable", source.Pos{}, val)
		}
	}
	for i := range levelCount {
		if val, ok := v.learned.get(i, name); ok {
			add(learnedName(i), source.Pos{}, val)
		}
		layers := v.layers(i)
		for j := len(layers) - 1; j >= 0; j-- {
			if raw, ok := layers[j].Raw(name); ok {
				add(layers[j].Name, layers[j].At(name), raw)
			}
		}
	}
	return out
}

func learnedName(level int) string {
	switch level {
	case levelSet:
		return "set_fact or register"
	case levelIncluded:
		return "include_vars"
	}
	return "facts"
}

// Names returns every name that has a value, each once.
func (v *View) Names() []string {
	magic := map[string]bool{}
	if v.scope.Magic != nil {
		for _, n := range v.scope.Magic.MagicNames() {
			magic[n] = true
		}
	}
	held := map[string]bool{}
	var out []string
	for _, n := range v.Held() {
		held[n] = true
		if !magic[n] || v.has(n) {
			out = append(out, n)
		}
	}
	if v.scope.Fallback == nil {
		return out
	}
	for _, n := range v.scope.Fallback.FallbackNames() {
		if _, ok := v.scope.Fallback.Fallback(n, v); ok && !held[n] {
			out = append(out, n)
		}
	}
	return out
}

// has reports whether a name has a value, from a magic variable or from elsewhere.
func (v *View) has(name string) bool {
	_, ok, err := v.Lookup(name)
	return ok || err != nil
}

// Held returns the names in the layers, and those of the magic variables, which can be without a value in this view.
func (v *View) Held() []string {
	seen := map[string]bool{}
	var out []string
	add := func(names []string) {
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	for l := v.local; l != nil; l = l.parent {
		add([]string{l.name})
	}
	if v.scope.Magic != nil {
		add(v.scope.Magic.MagicNames())
	}
	for i := range levelCount {
		add(v.learned.names(i))
		for _, l := range v.layers(i) {
			add(l.Names())
		}
	}
	return out
}

// Facts returns the gathered facts of the host.
func (v *View) Facts() *value.Dict { return v.learned.Facts() }
