package connector

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// pieces writes data in pieces of a length.
func pieces(w io.Writer, data []byte, length byte) {
	for n := int(length) + 1; len(data) > n; data = data[n:] {
		_, _ = w.Write(data[:n])
	}
	_, _ = w.Write(data)
}

// FuzzFrame has the shell that stays print anything: what is passed on does not depend on the
// pieces that it comes in, and not more is kept than may be the mark.
func FuzzFrame(f *testing.F) {
	for _, text := range []string{
		"M\nhello\n\nM 0\n", "motd\nM\n\nM 12\n", "M\nM\n\nM x\n", "M\n\nM 256\nmore",
		"M\na\n\nM 99999999999999999999999", "M\n\n\nM", "M\nx\n\nM -1\n",
	} {
		for _, n := range []byte{0, 1, 255} {
			f.Add([]byte(text), n)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, length byte) {
		const mark = "kk-0123"
		data = bytes.ReplaceAll(data, []byte("M"), []byte(mark))
		var outs [2]bytes.Buffer
		var frames [2]frame
		var statuses [2]int
		for i, n := range []byte{length, 255} {
			ended := frames[i].open(mark, &outs[i])
			pieces(&frames[i], data, n)
			if kept := len(frames[i].held); kept > len(mark)+maxStatus+3 {
				t.Errorf("%d bytes are kept: %q", kept, frames[i].held)
			}
			select {
			case statuses[i] = <-ended:
			default:
				statuses[i] = -1
			}
			if statuses[i] < -1 || statuses[i] > 255 {
				t.Errorf("status %d", statuses[i])
			}
		}
		if outs[0].String() != outs[1].String() || frames[0].state != frames[1].state || statuses[0] != statuses[1] {
			t.Errorf("in pieces of %d: %q, %v, %d; at once: %q, %v, %d", int(length)+1,
				outs[0].String(), frames[0].state, statuses[0], outs[1].String(), frames[1].state, statuses[1])
		}
	})
}

// FuzzWatch has sudo and su, or what stands in their place, print anything.
func FuzzWatch(f *testing.F) {
	for _, text := range []string{
		"kk-open-M\nhello", "kk-ask-M", "kk-ask-Mkk-ask-M", "lecture\nkk-ask-M\nkk-open-M\n", "kk-open-M",
		"sudo: a password is required\n",
	} {
		f.Add([]byte(text), byte(0))
		f.Add([]byte(text), byte(255))
	}
	f.Fuzz(func(t *testing.T, data []byte, length byte) {
		data = bytes.ReplaceAll(data, []byte("M"), []byte("0123"))
		for _, method := range []string{"sudo", "su"} {
			b := &become{o: BecomeOptions{Method: method, User: "root", Exe: method}}
			var out bytes.Buffer
			w := newWatch("0123")
			w.to = &out
			pieces(w, data, length)
			w.end()
			if w.isOpen() && w.isWrong() {
				t.Error("the command runs with a wrong password")
			}
			if !w.isOpen() && (out.Len() > 0 || b.reason(w.said(), Exit{Code: 1}) == "") {
				t.Errorf("passed on %q before the command; the reason is %q", out.Bytes(), b.reason(w.said(), Exit{}))
			}
		}
	})
}

// said is a host that answers every command alike.
type said struct {
	stdout, stderr string
	code           byte
}

func (said) Close() error { return nil }

func (s said) Run(_ context.Context, c Command) (Exit, error) {
	if c.Stdin != nil {
		go func() { _, _ = io.Copy(io.Discard, c.Stdin) }()
	}
	if c.Stdout != nil {
		pieces(c.Stdout, []byte(s.stdout), 3)
	}
	if c.Stderr != nil {
		pieces(c.Stderr, []byte(s.stderr), 3)
	}
	return Exit{Code: int(s.code)}, nil
}

// FuzzTransfer has the scripts of Put and Get answer anything.
func FuzzTransfer(f *testing.F) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	f.Add("send\nsum "+empty+"\nover\n", "", byte(0))
	f.Add("same\nsum x\n", "size 5\nsum "+empty+"\n", byte(0))
	f.Add("", "size 0\nsum "+empty, byte(0))
	f.Add("backup .1~\n", "size 99999999999999999999\nno\n", byte(40))
	f.Fuzz(func(t *testing.T, stdout, stderr string, code byte) {
		host := said{stdout, stderr, code}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, size := range []int{0, 5, small + 1} {
			text := strings.Repeat("x", size)
			_, err := Put(ctx, host, File{Path: "/x", Size: int64(size)}, strings.NewReader(text))
			if err != nil && err.Error() == "" {
				t.Errorf("%#v has no text", err)
			}
		}
		var got bytes.Buffer
		sum, err := Get(ctx, host, "/x", &got, nil)
		if err == nil && (got.String() != stdout || !strings.Contains(stderr, sum) || code != 0) {
			t.Errorf("got %q with sum %s of %q, %q, %d", got.String(), sum, stdout, stderr, code)
		}
	})
}

// A panic of what a command prints to is an error of the command, wherever the transport
// calls it, and of the transport itself.
func TestGuarded(t *testing.T) {
	crash := panics{}
	for name, run := range map[string]func() (Exit, error){
		"stdout":    func() (Exit, error) { return Guarded(apart{}).Run(t.Context(), Command{Stdout: crash}) },
		"stderr":    func() (Exit, error) { return Guarded(apart{}).Run(t.Context(), Command{Stderr: crash}) },
		"stdin":     func() (Exit, error) { return Guarded(apart{}).Run(t.Context(), Command{Stdin: crash}) },
		"transport": func() (Exit, error) { return Guarded(crash).Run(t.Context(), Command{}) },
	} {
		_, err := run()
		var p *PanicError
		if !errors.As(err, &p) || p.Value != name || !strings.Contains(p.Stack, "connector.panics") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if exit, err := Guarded(said{"text", "", 3}).Run(t.Context(), Command{}); exit.Code != 3 || err != nil {
		t.Errorf("got %v, %v", exit, err)
	}
}

// apart is a transport that has goroutines of its own, and ends with its context.
type apart struct{}

func (apart) Close() error { return nil }

func (apart) Run(ctx context.Context, c Command) (Exit, error) {
	go func() {
		switch {
		case c.Stdout != nil:
			_, _ = io.WriteString(c.Stdout, "stdout")
		case c.Stderr != nil:
			_, _ = io.WriteString(c.Stderr, "stderr")
		default:
			_, _ = io.ReadAll(c.Stdin)
		}
	}()
	<-ctx.Done()
	return Exit{}, ctx.Err()
}

// panics panics with the name of what is called.
type panics struct{}

func (panics) Write(p []byte) (int, error)                { panic(string(p)) }
func (panics) Read([]byte) (int, error)                   { panic("stdin") }
func (panics) Run(context.Context, Command) (Exit, error) { panic("transport") }
func (panics) Close() error                               { return nil }
