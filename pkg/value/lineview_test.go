package value

import (
	"runtime"
	"strings"
	"testing"
)

// Whatever reads the lines of a long text gets what it would get of a list.
func TestLinesOfLongTextAreAList(t *testing.T) {
	text := strings.Repeat("a\n\nlonger\r\n", longText/4)
	want := SplitLines(text, false)
	d := NewDict("stdout", text)
	d.SetLines("stdout_lines", text)
	merged := NewDict("stdout_lines", nil)
	merged.Merge(d)
	many := d.Clone()
	for i := range 2 * small {
		many.Set(i, i)
	}
	for name, d := range map[string]*Dict{"set": d, "copied": d.Copy(), "cloned": d.Clone(), "merged": merged,
		"indexed": many} {
		got, _ := d.Get("stdout_lines")
		looked, _ := d.Lookup("stdout_lines")
		for how, v := range map[string]any{"get": got, "lookup": looked} {
			if list, ok := v.([]any); !ok || len(list) != len(want) || !Equal(v, want) || TypeName(v) != "list" {
				t.Errorf("%s, %s: a %s, want the list", name, how, TypeName(v))
			}
		}
		for k, v := range d.All() {
			if k == "stdout_lines" && !Equal(v, want) {
				t.Errorf("%s: All has a %T", name, v)
			}
		}
	}
	if whole := NewDict("stdout", text, "stdout_lines", want); !Equal(d, whole) || !Equal(whole, d) {
		t.Error("it does not equal the dict with the list")
	}
	one, err := JSON(d, JSONOptions{})
	two, err2 := JSON(NewDict("stdout", text, "stdout_lines", want), JSONOptions{})
	if err != nil || err2 != nil || one != two {
		t.Errorf("JSON differs: %v, %v", err, err2)
	}
	if Repr(d) != Repr(NewDict("stdout", text, "stdout_lines", want)) {
		t.Error("it prints as something else")
	}
}

// What the lines of a text take is the text.
func TestLinesOfLongTextTakeNoMemory(t *testing.T) {
	text := strings.Repeat("y\n", 4<<20)
	before := heap()
	d := NewDict()
	d.SetLines("stdout_lines", text)
	if list, _ := d.Get("stdout_lines"); len(list.([]any)) != 4<<20 {
		t.Fatal("lines are missing")
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d bytes are kept for the lines of %d", grown, len(text))
	}
	runtime.KeepAlive(d)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
