// Package vars resolves the variables of a host. Variables are in layers by precedence. They are evaluated on first
// use, and the origin of each is known.
package vars

import (
	"sort"
	"sync"

	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// Layer is a set of variables of one origin. It is immutable, and hosts share it.
type Layer struct {
	Name string // the origin as shown to users: "group_vars/all.yml", "role web defaults"

	data map[string]*template.Data
	at   map[string]source.Pos

	// For layers whose values are compiled on first use:
	raw     *value.Dict
	engine  *template.Engine
	pos     func(key string) source.Pos
	unsafe  func(path []string) bool
	mu      sync.RWMutex
	names   []string
	errs    map[string]error
	literal bool

	watchOnce sync.Once
	watched   uint64
}

// Compiled creates a layer of compiled values. names specifies their order.
func Compiled(name string, names []string, data map[string]*template.Data, at map[string]source.Pos) *Layer {
	return &Layer{Name: name, names: names, data: data, at: at}
}

// Templates creates a layer of raw values whose strings can be templates. Each is compiled when it is first looked
// up. unsafe reports whether the string at a path (the name of the variable, then keys and indexes) is plain data; it
// may be nil.
func Templates(name string, values *value.Dict, e *template.Engine, pos func(string) source.Pos,
	unsafe func(path []string) bool) *Layer {
	return &Layer{Name: name, raw: values, engine: e, pos: pos, unsafe: unsafe, data: map[string]*template.Data{}}
}

// Values creates a layer of plain data, without templates.
func Values(name string, values *value.Dict) *Layer {
	return &Layer{Name: name, raw: values, literal: true}
}

// At returns the position of a variable of the layer.
func (l *Layer) At(name string) source.Pos {
	if l.pos != nil {
		return l.pos(name)
	}
	return l.at[name]
}

// Names returns the names of the layer's variables.
func (l *Layer) Names() []string {
	if l.raw == nil {
		return l.names
	}
	out := make([]string, 0, l.raw.Len())
	for k := range l.raw.All() {
		if s, ok := k.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Len returns the number of variables.
func (l *Layer) Len() int {
	if l.raw != nil {
		return l.raw.Len()
	}
	return len(l.names)
}

// get returns plain data in v, or templates in d.
func (l *Layer) get(name string) (v any, d *template.Data, ok bool, err error) {
	if l.literal {
		v, ok = l.raw.Lookup(name)
		return v, nil, ok, nil
	}
	if l.raw == nil {
		d, ok = l.data[name]
	} else if d, ok, err = l.compile(name); err != nil {
		return nil, nil, true, err
	}
	if !ok {
		return nil, nil, false, nil
	}
	if v, static := d.Static(); static {
		return v, nil, true, nil
	}
	return nil, d, true, nil
}

func (l *Layer) compile(name string) (*template.Data, bool, error) {
	raw, ok := l.raw.Lookup(name)
	if !ok {
		return nil, false, nil
	}
	l.mu.RLock()
	d, done := l.data[name]
	err := l.errs[name]
	l.mu.RUnlock()
	if done || err != nil {
		return d, true, err
	}
	d, err = l.engine.DataExcept(raw, l.At(name), l.unsafeIn(name))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if l.errs == nil {
			l.errs = map[string]error{}
		}
		l.errs[name] = err
		return nil, true, err
	}
	l.data[name] = d
	return d, true, nil
}

// unsafeIn returns a function that reports which strings of a variable are plain data; nil if there are none.
func (l *Layer) unsafeIn(name string) func(path []string) bool {
	if l.unsafe == nil {
		return nil
	}
	return func(path []string) bool { return l.unsafe(append([]string{name}, path...)) }
}

// Raw returns the value of a variable as written.
func (l *Layer) Raw(name string) (any, bool) {
	if l.raw != nil {
		return l.raw.Get(name)
	}
	d, ok := l.data[name]
	if !ok {
		return nil, false
	}
	return d.Raw(), true
}

// Host contains the variables that a run sets for one host: facts, set_fact and registered variables, include_vars.
// Many goroutines can read it while one adds to it. The values themselves never change.
type Host struct {
	Watch *Watch // may be nil

	watched  uint64
	mu       sync.RWMutex
	facts    *value.Dict // ansible_facts: names without prefix; replaced, never modified
	injected *value.Dict // facts under the names from the modules, and cacheable set_facts
	set      *value.Dict
	included *value.Dict
	files    map[any][]*Layer // vars_files of a play: their names can depend on the host
}

// AddFacts merges facts from a module. Each fact is a variable under its own name (ansible_system, services), and in
// ansible_facts without the prefix ansible_. A host must not specify how it is reached: a fact with the name of a
// watched variable (ansible_connection, ansible_host) is only in ansible_facts.
func (h *Host) AddFacts(facts *value.Dict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	plain, injected := h.facts.Copy(), h.injected.Copy()
	for k, v := range facts.All() {
		name, _ := k.(string)
		plain.Set(trimPrefix(name), v)
		if !h.Watch.has(name) {
			injected.Set(name, v)
		}
	}
	h.facts, h.injected = plain, injected
}

func trimPrefix(name string) string {
	const prefix = "ansible_"
	if len(name) > len(prefix) && name[:len(prefix)] == prefix {
		return name[len(prefix):]
	}
	return name
}

// AddCacheable sets variables with the precedence of facts (set_fact cacheable).
func (h *Host) AddCacheable(vars *value.Dict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched |= h.Watch.of(vars)
	plain, injected := h.facts.Copy(), h.injected.Copy()
	plain.Merge(vars)
	injected.Merge(vars)
	h.facts, h.injected = plain, injected
}

// Kept returns what can be stored for later runs: facts under the names from the modules, and cacheable set_facts. It
// must not be modified.
func (h *Host) Kept() *value.Dict {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.injected
}

// Recall restores the result of Kept from a previous run.
func (h *Host) Recall(kept *value.Dict) {
	gathered, cacheable := value.NewDict(), value.NewDict()
	for k, v := range kept.All() {
		name, _ := k.(string)
		if name != trimPrefix(name) {
			gathered.Set(name, v)
		} else {
			cacheable.Set(name, v)
		}
	}
	h.AddFacts(gathered)
	h.AddCacheable(cacheable)
}

// Gathered reports whether facts were gathered, in this run or in the one that stored them. set_fact alone does not
// count.
func (h *Host) Gathered() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.facts != nil && h.facts.Has("module_setup")
}

// Set sets variables with the precedence of set_fact and register.
func (h *Host) Set(vars *value.Dict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched |= h.Watch.of(vars)
	if h.set == nil {
		h.set = value.NewDict()
	}
	h.set.Merge(vars)
}

// SetOne sets one variable with the precedence of register.
func (h *Host) SetOne(name string, v any) { h.Set(value.NewDict(name, v)) }

// Include sets variables with the precedence of include_vars. They can contain templates.
func (h *Host) Include(vars *value.Dict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched |= h.Watch.of(vars)
	if h.included == nil {
		h.included = value.NewDict()
	}
	h.included.Merge(vars)
}

// ClearFacts removes gathered facts (meta: clear_facts).
func (h *Host) ClearFacts() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts, h.injected = nil, nil
}

// SetFiles stores the vars_files layers of a play for this host.
func (h *Host) SetFiles(play any, layers []*Layer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files == nil {
		h.files = map[any][]*Layer{}
	}
	h.files[play] = layers
}

// Files returns the vars_files layers of a play for this host, and whether they were set.
func (h *Host) Files(play any) ([]*Layer, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	layers, ok := h.files[play]
	return layers, ok
}

// Facts returns the gathered facts; nil if there are none.
func (h *Host) Facts() *value.Dict {
	if h == nil {
		return nil
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.facts
}

// dict returns the variables of a level of precedence. The caller holds the lock.
func (h *Host) dict(level int) *value.Dict {
	switch level {
	case levelSet:
		return h.set
	case levelIncluded:
		return h.included
	case levelFacts:
		return h.injected
	}
	return nil
}

// get looks up a name in a level of precedence.
func (h *Host) get(level int, name string) (any, bool) {
	if h == nil {
		return nil, false
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.dict(level).Lookup(name)
}

func (h *Host) names(level int) []string {
	if h == nil {
		return nil
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	d := h.dict(level)
	out := make([]string, 0, d.Len())
	for k := range d.All() {
		if s, ok := k.(string); ok {
			out = append(out, s)
		}
	}
	sort.Strings(out)
	return out
}
