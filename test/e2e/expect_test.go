package e2e

import (
	"testing"

	"kubekey/pkg/value"
)

// TestExpect has a conversation over a real terminal of a host.
func TestExpect(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("userdel eve; true") })
	g.sh("useradd eve")
	r := g.run("expect", "command", "passwd eve", "responses",
		value.NewDict("(?i)password:", []any{"a pass: wörd", "a pass: wörd"}))
	if !r.Changed || dataOf(r, "rc") != 0 {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	g.sees("su -s /bin/sh ops -c 'echo \"a pass: wörd\" | su eve -c true' >/dev/null 2>&1 && echo logged in", "logged in")
}
