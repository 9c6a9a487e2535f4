// Package vars says what a name means for a host: variables in layers by
// precedence, resolved when they are asked for, with the origin of each.
package vars

import (
	"sort"
	"sync"

	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// Layer is a set of variables of one origin. It does not change; hosts share it.
type Layer struct {
	Name string // the origin as people are told it: "group_vars/all.yml", "role web defaults"

	data map[string]*template.Data
	at   map[string]source.Pos

	// Of layers whose values are compiled when first used:
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

// Compiled makes a layer of values that are compiled already. names gives their order.
func Compiled(name string, names []string, data map[string]*template.Data, at map[string]source.Pos) *Layer {
	return &Layer{Name: name, names: names, data: data, at: at}
}

// Templates makes a layer of raw values whose strings may be templates; each
// is compiled when it is first looked up. Those that unsafe tells by their
// paths (the name of the variable, then keys and indexes) are plain
// data; it may be nil.
func Templates(name string, values *value.Dict, e *template.Engine, pos func(string) source.Pos, unsafe func(path []string) bool) *Layer {
	return &Layer{Name: name, raw: values, engine: e, pos: pos, unsafe: unsafe, data: map[string]*template.Data{}}
}

// Values makes a layer of plain data: nothing in it is a template.
func Values(name string, values *value.Dict) *Layer {
	return &Layer{Name: name, raw: values, literal: true}
}

// At is where a variable of the layer is written.
func (l *Layer) At(name string) source.Pos {
	if l.pos != nil {
		return l.pos(name)
	}
	return l.at[name]
}

// Names lists the variables of the layer.
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

// Len is the number of variables.
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

// unsafeIn tells the strings of one variable that are plain data; nil when there are none.
func (l *Layer) unsafeIn(name string) func(path []string) bool {
	if l.unsafe == nil {
		return nil
	}
	return func(path []string) bool { return l.unsafe(append([]string{name}, path...)) }
}

// Raw is the value of a name as written.
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

// Host is what a run learned of one host: facts, set_fact and registered
// variables, include_vars. Many goroutines may read it while one adds to it;
// the values themselves never change.
type Host struct {
	Watch *Watch // may be nil

	watched  uint64
	mu       sync.RWMutex
	facts    *value.Dict // ansible_facts: names without prefix; replaced, never changed
	injected *value.Dict // the same under the names that modules gave them, and cacheable set_facts
	set      *value.Dict
	included *value.Dict
	files    map[any][]*Layer // vars_files of a play, whose names depend on the host
}

// AddFacts merges facts that a module found. Each is a variable by its name
// (ansible_system, services), and in ansible_facts without the prefix ansible_. A host does not
// say how it is reached: a fact with the name of a watched variable (ansible_connection,
// ansible_host) is in ansible_facts alone.
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

// AddCacheable sets variables with the rank of facts (set_fact cacheable).
func (h *Host) AddCacheable(vars *value.Dict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched |= h.Watch.of(vars)
	plain, injected := h.facts.Copy(), h.injected.Copy()
	plain.Merge(vars)
	injected.Merge(vars)
	h.facts, h.injected = plain, injected
}

// Kept is what later runs may know of the host: facts under the names that
// modules gave them, and what set_fact made cacheable. It must not be changed.
func (h *Host) Kept() *value.Dict {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.injected
}

// Recall takes what Kept returned in an earlier run.
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

// Gathered reports whether facts were gathered, in this run or in one that
// kept them: set_fact alone does not count.
func (h *Host) Gathered() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.facts != nil && h.facts.Has("module_setup")
}

// Set sets variables as set_fact and register do.
func (h *Host) Set(vars *value.Dict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched |= h.Watch.of(vars)
	if h.set == nil {
		h.set = value.NewDict()
	}
	h.set.Merge(vars)
}

// SetOne sets one variable as register does.
func (h *Host) SetOne(name string, v any) { h.Set(value.NewDict(name, v)) }

// Include sets variables as include_vars does. They may hold templates.
func (h *Host) Include(vars *value.Dict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched |= h.Watch.of(vars)
	if h.included == nil {
		h.included = value.NewDict()
	}
	h.included.Merge(vars)
}

// ClearFacts forgets gathered facts (meta: clear_facts).
func (h *Host) ClearFacts() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts, h.injected = nil, nil
}

// SetFiles keeps the vars_files layers of a play for this host.
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

// Facts returns what was gathered; nil when nothing was.
func (h *Host) Facts() *value.Dict {
	if h == nil {
		return nil
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.facts
}

// dict is the variables of a level of precedence; the caller holds the lock.
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

// get looks a name up in a level of precedence.
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
