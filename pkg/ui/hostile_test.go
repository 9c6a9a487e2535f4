package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// hostile is what a host may say: all that moves a cursor, colours, hides or
// turns text round, and lines that look like those of kk. Text that begins a
// line begins with FAKE.
func hostile() string {
	var b strings.Builder
	b.WriteString("\x1b[2J\x1b[0;31mFAKE\x1b[0m \x1b]0;title\x07\x1bPq\x1b\\ \x9b2J \xff\xc3")
	for r := range rune(0xa0) {
		if r < ' ' || r >= 0x7f {
			b.WriteRune(r)
		}
	}
	for _, r := range []rune{
		0xad, 0x61c, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060,
		0x2066, 0x2067, 0x2068, 0x2069, 0xfeff, 0xfff9, 0xe0001, 0xe0041,
	} {
		b.WriteRune(r)
	}
	for _, end := range []string{"\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029"} {
		b.WriteString(end + "FAKE RECAP ****")
	}
	for n := range 12 { // where a text of words may be broken
		b.WriteString(strings.Repeat("x", 60+n) + " FAKE: ")
	}
	return b.String()
}

// filler sets every field of an event.
type filler struct {
	text   string
	on     int // number of the switch that is on; the others are off
	status event.Status
	action string
	seen   int // switches so far
}

func (f *filler) fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *event.Status:
		*p = f.status
		return
	case *source.Severity:
		*p = source.Warning
		return
	case *time.Time:
		*p = start
		return
	case *time.Duration:
		*p = 2 * time.Second
		return
	case **value.Dict:
		*p = f.dict()
		return
	case **source.File:
		*p = source.NewFile(f.text, []byte(f.text+"\n"+f.text))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text)
	case reflect.Bool:
		f.seen++
		v.SetBool(f.on == f.seen)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Interface:
		v.Set(reflect.ValueOf(f.text))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		f.fill(elem)
		v.SetMapIndex(reflect.ValueOf(f.text), elem)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
		if t, ok := v.Addr().Interface().(*event.Task); ok {
			t.Action = f.action
		}
	default:
		panic("the test knows no field of " + v.Type().String())
	}
}

// dict is a result with all that the screen picks out of one, and more.
func (f *filler) dict() *value.Dict {
	d := value.NewDict(f.text, []any{f.text, value.NewDict(f.text, f.text)})
	for _, key := range strings.Fields("msg reason censored stdout stderr module_stdout module_stderr cmd rc assertion skip_reason") {
		d.Set(key, f.text)
	}
	return d
}

// events is one of each kind, filled.
func (f *filler) events() []event.Event {
	var out []event.Event
	for _, e := range event.Kinds() {
		v := reflect.New(reflect.TypeOf(e)).Elem()
		f.seen = 0
		f.fill(v)
		out = append(out, v.Interface().(event.Event))
	}
	return out
}

// everything is all events in all variants that make a difference.
func everything(text string) []event.Event {
	switches := 0
	for _, e := range event.Kinds() {
		f := &filler{}
		f.fill(reflect.New(reflect.TypeOf(e)).Elem())
		switches = max(switches, f.seen)
	}
	var out []event.Event
	known := map[string]bool{}
	add := func(f *filler) {
		for _, e := range f.events() {
			if key := string(event.Encode(e, time.Time{}, nil)); !known[key] {
				known[key] = true
				out = append(out, e)
			}
		}
	}
	for status := event.OK; status <= event.Unreachable; status++ {
		add(&filler{text: text, status: status, action: text})
		add(&filler{text: text, status: status, action: "debug"})
	}
	for on := range switches {
		add(&filler{text: text, on: on + 1, status: event.OK, action: "debug"})
		add(&filler{text: text, on: on + 1, status: event.Failed, action: text})
	}
	return out
}

// styling is what kk itself sends to a terminal beside text.
var styling = regexp.MustCompile(`\x1b\[[01];3[0-6]m|\x1b\[0m|\r\x1b\[K|\r\x1b\[[0-9]+A\x1b\[J`)

// clean reports what in an output is neither text nor kk's, once its styling is gone.
func clean(t *testing.T, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Error("the output is no UTF-8")
	}
	if strings.Contains(out, "\x1b[0;31mFAKE\x1b") {
		t.Error("a colour of the data is shown")
	}
	text := out
	if strings.Contains(out, "\x1b") {
		text = styling.ReplaceAllString(out, "")
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Fatalf("%U reaches the screen: %q", r, text[max(0, i-60):min(len(text), i+60)])
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "FAKE") {
			t.Fatalf("a line of the data looks like one of kk: %q", line)
		}
	}
}

func TestNoEventReachesTheTerminal(t *testing.T) {
	events := everything(hostile())
	for _, format := range []Format{Text, Ansible} {
		for _, verbosity := range []int{0, 1, 3} {
			for _, colored := range []bool{false, true}[verbosity&1:] {
				t.Run(fmt.Sprintf("%s -v=%d color=%v", format, verbosity, colored), func(t *testing.T) {
					var out, errs bytes.Buffer
					show(t, Options{
						Out: &out, Err: &errs, Format: format, Verbosity: verbosity, Color: colored, Timing: verbosity > 1, Slowest: 5,
						Continue: "kk again", Width: func() int { return 80 },
					}, events...)
					if out.Len() == 0 || errs.Len() == 0 {
						t.Fatal("nothing is shown")
					}
					if !colored && strings.Contains(out.String()+errs.String(), "\x1b") {
						t.Error("there is an escape sequence without colours")
					}
					clean(t, out.String())
					clean(t, errs.String())
				})
			}
		}
	}
}

func TestNoEventReachesTheStatusLine(t *testing.T) {
	var out lockedBuffer
	now := start
	p := newPrinter(Options{
		Out: &out, Err: &out, TTY: true, Color: true, Width: func() int { return 4000 }, Redact: &redact.Set{},
		Now: func() time.Time { return now },
	})
	p.status.stop() // it is drawn when the test says so
	for _, e := range (&filler{text: hostile(), action: hostile()}).events() {
		p.Emit(e)
		if s, ok := e.(event.HostStarted); ok {
			p.Emit(event.Progress{Task: s.Task, Host: s.Host, What: hostile(), Done: 1, Total: 3})
		}
		now = now.Add(time.Minute)
		p.mu.Lock()
		p.status.draw()
		p.mu.Unlock()
	}
	if got := out.String(); !strings.Contains(got, "[======") || !strings.Contains(got, `\x1b[2J`) {
		t.Error("no transfer, or no text of the host is shown")
	}
	clean(t, out.String())
}

// What programs read says what the events say, in JSON that is text as well.
func TestNoEventReachesTheTerminalAsJSON(t *testing.T) {
	text := hostile()
	for _, format := range []Format{JSON, AnsibleJSON} {
		var out, errs bytes.Buffer
		show(t, Options{Out: &out, Err: &errs, Format: format}, everything(text)...)
		clean(t, out.String())
		clean(t, errs.String())
		said := false
		for dec := json.NewDecoder(&out); dec.More(); {
			var v any
			if err := dec.Decode(&v); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			said = said || says(v, string([]rune(text)))
		}
		if !said {
			t.Errorf("%s: the text is not in it as it was", format)
		}
	}
}

func says(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case []any:
		for _, e := range v {
			if says(e, text) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if says(e, text) {
				return true
			}
		}
	}
	return false
}

func TestNoDiagnosticReachesTheTerminal(t *testing.T) {
	text := hostile()
	at := source.Pos{File: source.NewFile(text, []byte(text+"\n"+text)), Line: 2, Col: 3}
	ds := source.Diagnostics{
		source.Errorf(at, "%s", text).WithHelp("%s", text),
		source.Warningf(source.Pos{}, "%s", text),
		{Pos: at, Summary: "odd", Trace: []source.Frame{{What: text, At: at}}},
	}
	for _, colored := range []bool{false, true} {
		var out bytes.Buffer
		Diagnostics(&out, ds, colored, nil)
		if out.Len() == 0 {
			t.Fatal("nothing is shown")
		}
		clean(t, out.String())
	}
}

func TestScreen(t *testing.T) {
	for name, c := range map[string]struct{ in, text, json, raw string }{
		"text": {"a\tü 日本 🚀 e\u0301 ⚠\ufe0f\n", "a\tü 日本 🚀 e\u0301 ⚠\ufe0f\n", "a\tü 日本 🚀 e\u0301 ⚠\ufe0f\n",
			"a\tü 日本 🚀 e\u0301 ⚠\ufe0f\n"},
		"C0":            {"\x1b[2J\r\b\x00", `\x1b[2J\r\x08\x00`, `\u001b[2J\u000d\u0008\u0000`, "\x1b[2J\r\b\x00"},
		"DEL, C1":       {"\x7f\u009b", `\x7f\u009b`, `\u007f\u009b`, "\x7f\u009b"},
		"no UTF-8":      {"\x9b\xff", `\x9b\xff`, `\ufffd\ufffd`, "\x9b\xff"},
		"bidi":          {"\u202e\u2066\u2028", `\u202e\u2066\u2028`, `\u202e\u2066\u2028`, "\u202e\u2066\u2028"},
		"tag":           {"\U000e0041", `\U000e0041`, `\udb40\udc41`, "\U000e0041"},
		"Arabic number": {"\u0600", "\u0600", "\u0600", "\u0600"},
	} {
		for _, size := range []int{1, 2, 3, len(c.in)} { // a rune may come in pieces
			var text, js, raw bytes.Buffer
			screens := []*Screen{NewScreen(&text), NewScreen(&js), NewScreen(&raw)}
			for rest := []byte(c.in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				part := rest[:min(size, len(rest))]
				_, _ = screens[0].Write(part)
				_, _ = screens[1].JSON().Write(part)
				_, _ = screens[2].Raw().Write(part)
			}
			for _, s := range screens {
				if err := s.Flush(); err != nil {
					t.Error(err)
				}
			}
			if text.String() != c.text || js.String() != c.json || raw.String() != c.raw {
				t.Errorf("%s, %d at a time: %q %q %q", name, size, text.String(), js.String(), raw.String())
			}
		}
	}
}

func TestScreenEndsItsTextsWhole(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	_, _ = s.Write([]byte("half \xe6\x97"))
	s.line(false, span{"", "a line"})
	_, _ = s.JSON().Write([]byte("\xe6"))
	s.Message("one\nPLAY RECAP\n  three")
	_ = s.Flush()
	if got, want := out.String(), "half \\xe6\\x97a line\n\\xe6one\n  PLAY RECAP\n  three\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// failing has room for so many bytes and no more.
type failing struct{ room int }

func (f *failing) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, fmt.Errorf("no room")
	}
	return len(b), nil
}

func TestScreenKeepsItsFirstError(t *testing.T) {
	f := &failing{room: 4}
	s := NewScreen(f)
	for _, text := range []string{"abcd", "e", "f"} {
		_, err := s.Write([]byte(text))
		if (err != nil) != (text != "abcd") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if f.room != -1 || s.Flush() == nil {
		t.Errorf("room %d, error %v", f.room, s.Flush())
	}
	for _, w := range []func(){
		func() { s.line(true, span{red, "x"}) }, func() { s.redraw(1, false, "", nil) },
		func() { _, _ = s.Raw().Write([]byte("x")) },
	} {
		if w(); f.room != -1 {
			t.Error("it writes on after an error")
		}
	}
}
