package e2e

import (
	"context"
	"strings"
	"testing"

	"kubekey/pkg/cli"
	"kubekey/pkg/connector"
	sshconn "kubekey/pkg/connector/ssh"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// target is a host of the lab that one test has for itself, for modules that
// are called directly.
type target struct {
	t      *testing.T
	conn   connector.Connector
	number int // in the lab, from 0
}

// newTarget lets the test run beside others that have a target: most of the time
// they wait for a host. Tests that know the hosts by name have ended by then.
func newTarget(t *testing.T) target {
	t.Helper()
	l := needHosts(t)
	t.Parallel()
	i := <-free
	t.Cleanup(func() { free <- i })
	h := l.Hosts[i]
	conn, err := sshconn.New(sshconn.Options{
		Host: h.Name, Address: h.Address, User: "root", PrivateKeyFiles: []string{h.Key},
		KnownHosts: []string{hosts.KnownHosts()}, ConfigFile: "none", AgentSocket: "none",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	g := target{t, conn, i}
	// whichever test the host had before
	g.sh("ls /var/lib/apt/lists/*_Packages >/dev/null 2>&1 || apt-get update -q >/dev/null 2>&1")
	return g
}

// in is the same host in a subtest.
func (g target) in(t *testing.T) target { return target{t, g.conn, g.number} }

func (g target) name() string { return hosts.Hosts[g.number].Name }

func (g target) spec(name string) module.Spec {
	all, err := cli.Modules()
	if err != nil {
		g.t.Fatal(err)
	}
	s := all.Find(name)
	if s == nil {
		g.t.Fatalf("there is no module %q", name)
	}
	return *s
}

// needs installs packages on the host.
func (g target) needs(packages string) {
	g.t.Helper()
	g.sh("export DEBIAN_FRONTEND=noninteractive; { apt-get update -q && apt-get install -q -y --no-install-recommends " +
		packages + "; } >/tmp/apt.log 2>&1 || { tail /tmp/apt.log; exit 1; }")
}

// run runs a module that must not fail.
func (g target) run(name string, pairs ...any) module.Result {
	g.t.Helper()
	r := moduletest.Run(g.t, g.spec(name), value.NewDict(pairs...), moduletest.Options{Conn: g.conn})
	if r.Failed {
		g.t.Errorf("%s %v failed: %+v", name, pairs, r)
	}
	return r
}

// twice runs a module that must change something once, with check mode and a
// diff before and after.
func (g target) twice(name string, pairs ...any) (first, second module.Result) {
	g.t.Helper()
	return moduletest.RunTwice(g.t, g.spec(name), value.NewDict(pairs...), moduletest.Options{Conn: g.conn, Diff: true})
}

// same runs a module that must find nothing to change.
func (g target) same(name string, pairs ...any) module.Result {
	g.t.Helper()
	r := g.run(name, pairs...)
	if r.Changed {
		g.t.Errorf("%s %v changed something: %+v", name, pairs, r)
	}
	return r
}

// dry runs a module in check mode, which must predict a change.
func (g target) dry(name string, pairs ...any) module.Result {
	g.t.Helper()
	r := moduletest.Run(g.t, g.spec(name), value.NewDict(pairs...),
		moduletest.Options{Conn: g.conn, Check: true, Diff: true})
	if r.Failed || !r.Changed {
		g.t.Errorf("%s %v in check mode predicts no change: %+v", name, pairs, r)
	}
	return r
}

// fails runs a module that must fail with the text in its message.
func (g target) fails(text, name string, pairs ...any) {
	g.t.Helper()
	r, err := moduletest.Try(g.t, g.spec(name), value.NewDict(pairs...), moduletest.Options{Conn: g.conn})
	msg := r.Msg
	if err != nil {
		msg = err.Error()
	} else if !r.Failed {
		g.t.Errorf("%s %v did not fail: %+v", name, pairs, r)
	}
	if !strings.Contains(msg, text) {
		g.t.Errorf("%s %v failed with %q, want %q in it", name, pairs, msg, text)
	}
}

// sh runs a script past the connector and returns what it printed.
func (g target) sh(script string) string {
	g.t.Helper()
	out, err := hosts.Exec(context.Background(), g.number, script) // cleanups outlive the test's context
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// sees fails the test unless the script prints exactly what is given.
func (g target) sees(script, expected string) {
	g.t.Helper()
	out, err := hosts.Exec(g.t.Context(), g.number, script+"\n:")
	if out = strings.TrimSpace(out); out != expected {
		g.t.Errorf("%s printed %q, %v, want %q", script, out, err, expected)
	}
}

func dataOf(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}
