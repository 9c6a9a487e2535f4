package ssh

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// FuzzSession has a server send anything during a command: on standard error, where the name
// of the login shell is expected, and as the exit status.
func FuzzSession(f *testing.F) {
	f.Add([]byte("kk-M bash\nhello"), byte(3), "exit-status", []byte{0, 0, 0, 1})
	f.Add([]byte("motd\nkk-M \nmore"), byte(0), "exit-signal",
		[]byte("\x00\x00\x00\x04KILL\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("kk-M without an end"), byte(255), "exit-signal", []byte("\x00\x00\x00\x03-99"))
	f.Add([]byte("nothing"), byte(1), "keepalive@openssh.com", []byte{})
	f.Fuzz(func(t *testing.T, data []byte, length byte, kind string, payload []byte) {
		text := strings.ReplaceAll(string(data), "M", "0123")
		var shell loginShell
		var out bytes.Buffer
		find := &finder{prefix: "kk-0123 ", found: shell.learn, to: &out}
		for rest := []byte(text); len(rest) > 0; {
			n := min(int(length)+1, len(rest))
			_, _ = find.Write(rest[:n])
			rest = rest[n:]
		}
		_ = find.flush()
		if !strings.Contains(text, "kk-0123 ") && out.String() != text {
			t.Errorf("%q is passed on as %q", text, out.String())
		}
		exit, ok := parseExit(&ssh.Request{Type: kind, Payload: payload})
		if !ok && exit.Code+len(exit.Signal) != 0 {
			t.Errorf("%q is none and ends with %+v", payload, exit)
		}
	})
}
