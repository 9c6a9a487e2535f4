package value

import (
	"sync"
	"weak"
)

// longText is the length in bytes from which the lines of a text are not kept as a list: a list of short lines takes
// thirty times the memory of the text.
const longText = 32 << 10

// lineView is the list of lines of a long text. It is stored only in a Dict, which returns the list: readers never
// see a lineView.
type lineView struct {
	text string

	mu   sync.Mutex
	last weak.Pointer[[]any] // the list returned last: reads often come in a row
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

// at returns the value at an index.
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
