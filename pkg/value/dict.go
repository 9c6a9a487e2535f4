package value

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Dict is a mapping that keeps the order in which its keys were added. Keys
// are strings, ints, floats, bools or nil; as in Python 1 and 1.0 are the same key.
// A nil *Dict reads as empty. A Dict that several hosts share is never changed.
type Dict struct {
	keys   []any
	values []any       // as stored; read them with at
	index  map[any]int // nil while the dict is small
}

// small is the size up to which a linear search beats a map.
const small = 16

// NewDict returns a dict of alternating keys and values.
func NewDict(pairs ...any) *Dict {
	d := &Dict{}
	if len(pairs) > 0 {
		d.Grow(len(pairs)/2 + 2) // a few more keys often follow
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Set(pairs[i], pairs[i+1])
	}
	return d
}

// Len is the number of keys.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.keys)
}

func normal(key any) any {
	switch k := key.(type) {
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int(k)
		}
	case string, int, bool, nil:
	default:
		return fmt.Sprint(k) // lists and dicts are no keys; callers report them earlier
	}
	return key
}

func (d *Dict) find(key any) int {
	if d == nil {
		return -1
	}
	key = normal(key)
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// Get returns the value of a key.
func (d *Dict) Get(key any) (any, bool) {
	if i := d.find(key); i >= 0 {
		return d.at(i), true
	}
	return nil, false
}

// Lookup is Get for a string key; it does not allocate.
func (d *Dict) Lookup(key string) (any, bool) {
	if d == nil {
		return nil, false
	}
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return d.at(i), true
		}
		return nil, false
	}
	for i, k := range d.keys {
		if s, ok := k.(string); ok && s == key {
			return d.at(i), true
		}
	}
	return nil, false
}

// Grow makes room for n more keys.
func (d *Dict) Grow(n int) {
	d.keys = slices.Grow(d.keys, n)
	d.values = slices.Grow(d.values, n)
}

// Has reports whether the key exists.
func (d *Dict) Has(key any) bool { return d.find(key) >= 0 }

// String returns the value of a key if it is a string, else "".
func (d *Dict) String(key any) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}

// Set gives a key a value; a new key goes to the end.
func (d *Dict) Set(key, v any) {
	key = normal(key)
	if i := d.find(key); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys = append(d.keys, key)
	d.values = append(d.values, v)
	if d.index != nil {
		d.index[key] = len(d.keys) - 1
	} else if len(d.keys) > small {
		d.reindex()
	}
}

// Delete removes a key and reports whether it existed.
func (d *Dict) Delete(key any) bool {
	i := d.find(key)
	if i < 0 {
		return false
	}
	d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	d.values = append(d.values[:i:i], d.values[i+1:]...)
	d.index = nil
	if len(d.keys) > small {
		d.reindex()
	}
	return true
}

func (d *Dict) reindex() {
	d.index = make(map[any]int, 2*len(d.keys))
	for i, k := range d.keys {
		d.index[k] = i
	}
}

// Keys returns the keys in order, as a fresh slice.
func (d *Dict) Keys() []any {
	if d == nil {
		return nil
	}
	return append([]any(nil), d.keys...)
}

// All ranges over keys and values in order.
func (d *Dict) All() iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		if d == nil {
			return
		}
		for i, k := range d.keys {
			if !yield(k, d.at(i)) {
				return
			}
		}
	}
}

// Clone copies the dict deeply.
func (d *Dict) Clone() *Dict { return d.with(Clone) }

// Copy copies the dict; nested containers are shared.
func (d *Dict) Copy() *Dict { return d.with(func(v any) any { return v }) }

func (d *Dict) with(each func(any) any) *Dict {
	out := &Dict{}
	if d == nil {
		return out
	}
	out.keys = append([]any(nil), d.keys...)
	out.values = make([]any, len(d.values))
	for i, v := range d.values {
		out.values[i] = each(v)
	}
	if d.index != nil {
		out.reindex()
	}
	return out
}

// Merge sets every key of more in d.
func (d *Dict) Merge(more *Dict) {
	if more == nil {
		return
	}
	for i, k := range more.keys {
		d.Set(k, more.values[i])
	}
}

func (d *Dict) equal(o *Dict) bool {
	if d.Len() != o.Len() {
		return false
	}
	for k, v := range d.All() {
		w, ok := o.Get(k)
		if !ok || !Equal(v, w) {
			return false
		}
	}
	return true
}
