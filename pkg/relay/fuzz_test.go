package relay

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
)

// FuzzReadAnswer reads what a host prints.
func FuzzReadAnswer(f *testing.F) {
	for _, line := range []string{`{"id":1}`, `{"id":1,"error":"disk full","fault":"failing"}`, `{"id":2,"has":[0,1,-5]}`,
		`{"id":2,"port":70000}`, `{"error":"\u001b[2J\u0000"}`, "Welcome to this host", "", `{"id":1,"fault":"lost","error":"x"}`} {
		f.Add([]byte(line + "\n" + line))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewLineReader(bytes.NewReader(data))
		for range 10 {
			a, err := ReadAnswer(r)
			if err != nil {
				if strings.ContainsFunc(err.Error(), unicode.IsControl) {
					t.Fatalf("the error has control characters: %q", err)
				}
				return
			}
			if len(a.Error) > maxError+10 || strings.ContainsFunc(a.Error, unicode.IsControl) {
				t.Fatalf("the text of an error: %q", a.Error)
			}
			if (a.Error != "") != (a.Fault != NoFault) && a.Error != "" || a.Fault == Lost {
				t.Fatalf("error %q with fault %q", a.Error, a.Fault)
			}
			if a.Port < 0 || a.Port > 65535 || len(a.Has) > maxList {
				t.Fatalf("%+v", a)
			}
		}
	})
}

// FuzzReadRequest reads what the program on a host gets, frames included.
func FuzzReadRequest(f *testing.F) {
	blob := `{"digest":"sha256:` + strings.Repeat("0a", 32) + `","size":3}`
	for _, line := range []string{`{"id":1,"do":"list","blobs":[` + blob + `]}`, `{"id":1,"do":"put","blob":` + blob + `}`,
		`{"do":"fetch","blob":` + blob + `}`, `{"do":"start"}`, `{"do":"rm"}`, `{"do":"put","blob":{"digest":"sha256:../x"}}`} {
		f.Add([]byte(line + "\n\x00\x00\x00\x03abc\x00\x00\x00\x00"))
		f.Add([]byte(line + "\n\x00\x00\x00\x03abc\xff\xff\xff\xff"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewLineReader(bytes.NewReader(data))
		for range 10 {
			q, err := ReadRequest(r)
			if err != nil {
				return
			}
			for _, b := range append(pointers(q.Blobs), q.Blob, q.Content) {
				if b != nil && (len(b.Hex()) != 64 || strings.ContainsAny(b.Hex(), "/.")) {
					t.Fatalf("%+v has a name that is none", b)
				}
			}
			if q.Do == DoPut {
				n, err := io.Copy(io.Discard, NewFrameReader(r))
				if n > int64(len(data)) {
					t.Fatalf("%d bytes of %d", n, len(data))
				}
				if err != nil && !errors.Is(err, ErrAbandoned) {
					return
				}
			}
		}
	})
}

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	to := frames{&b}
	text := strings.Repeat("0123456789", 10_000)
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, strings.NewReader(text), make([]byte, 999)); err != nil {
		t.Fatal(err)
	}
	if err := to.mark(0); err != nil {
		t.Fatal(err)
	}
	b.WriteString("next\n")
	r := NewLineReader(&b)
	got, err := io.ReadAll(NewFrameReader(r))
	if err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if rest, _ := readLine(r); string(rest) != "next" {
		t.Errorf("behind the frames is %q", rest)
	}
}
