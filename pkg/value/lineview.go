package value

import (
	"sync"
	"weak"
)

// longText is the length from which on the lines of a text are no list that is kept: the
// list of a text of short lines takes thirty times the memory of the text.
const longText = 32 << 10

// lineView is the list of the lines of a long text. It is only ever stored in a
// Dict, which gives out the list: who reads it cannot see the difference.
type lineView struct {
	text string

	mu   sync.Mutex
	last weak.Pointer[[]any] // what was given out last: reads often come in a row
}

// SetLines gives key the lines of text, as SplitLines makes them. A long text is
// kept as it is, and split when the value is read.
func (d *Dict) SetLines(key any, text string) {
	if len(text) < longText {
		d.Set(key, SplitLines(text, false))
		return
	}
	d.Set(key, &lineView{text: text})
}

// at is the value at a place.
func (d *Dict) at(i int) any {
	if view, ok := d.values[i].(*lineView); ok {
		return view.list()
	}
	return d.values[i]
}

func (v *lineView) list() []any {
	v.mu.Lock()
	defer v.mu.Unlock()
	if made := v.last.Value(); made != nil {
		return *made
	}
	list := SplitLines(v.text, false)
	v.last = weak.Make(&list)
	return list
}
