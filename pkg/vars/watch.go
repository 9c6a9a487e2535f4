package vars

import "kubekey/pkg/value"

// Watch is a set of at most 64 names whose absence can be determined without searching all layers. The connection
// variables are read at every task, and most are never set.
type Watch struct{ bits map[string]uint64 }

// NewWatch creates a Watch. Bit i of a mask is names[i].
func NewWatch(names ...string) *Watch {
	w := &Watch{bits: make(map[string]uint64, len(names))}
	for i, n := range names {
		w.bits[n] = 1 << i
	}
	return w
}

func (w *Watch) has(name string) bool { return w != nil && w.bits[name] != 0 }

// of returns the mask of the names that a dict contains.
func (w *Watch) of(d *value.Dict) uint64 {
	if w == nil {
		return 0
	}
	var mask uint64
	for k := range d.All() {
		if name, ok := k.(string); ok {
			mask |= w.bits[name]
		}
	}
	return mask
}

func (l *Layer) mask(w *Watch) uint64 {
	l.watchOnce.Do(func() {
		for _, n := range l.Names() {
			l.watched |= w.bits[n]
		}
	})
	return l.watched
}

// Watched returns the mask of the watched names that are set in a layer of the view.
func (v *View) Watched() uint64 {
	w := v.scope.Watch
	var mask uint64
	for i := range levelCount {
		for _, l := range v.layers(i) {
			mask |= l.mask(w)
		}
	}
	for l := v.local; l != nil; l = l.parent {
		mask |= w.bits[l.name]
	}
	if h := v.learned; h != nil {
		h.mu.RLock()
		mask |= h.watched
		h.mu.RUnlock()
	}
	return mask
}
