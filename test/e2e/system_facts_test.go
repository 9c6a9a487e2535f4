package e2e

import (
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

func factOf(r module.Result, path ...string) any {
	var v any = r.Facts
	for _, name := range path {
		d, ok := v.(*value.Dict)
		if !ok {
			return nil
		}
		v, _ = d.Get(name)
	}
	return v
}

func TestGetent(t *testing.T) {
	g := newTarget(t)
	r := g.same("getent", "database", "passwd", "key", "root")
	if got := value.Repr(factOf(r, "getent_passwd")); got != "{'root': ['x', '0', '0', 'root', '/root', '/bin/bash']}" {
		t.Errorf("got %s", got)
	}
	r = g.same("getent", "database", "group")
	if got := value.Repr(factOf(r, "getent_group", "root")); got != "['x', '0', '']" {
		t.Errorf("got %s", got)
	}
	r = g.same("getent", "database", "passwd", "key", "root", "service", "files", "split", "/")
	if got := value.Repr(factOf(r, "getent_passwd")); got != "{'root:x:0:0:root:': ['root:', 'bin', 'bash']}" {
		t.Errorf("got %s", got)
	}
	r = g.same("getent", "database", "passwd", "key", "nobody-here", "fail_key", false)
	if got := value.Repr(r.Facts); got != "{'getent_passwd': {'nobody-here': None}}" {
		t.Errorf("got %s", got)
	}
	r = g.same("getent", "database", "ahosts", "key", "127.0.0.1")
	if got := value.Repr(factOf(r, "getent_ahosts", "127.0.0.1")); got != "[['STREAM', '127.0.0.1'], ['DGRAM'], ['RAW']]" {
		t.Errorf("an entry that is there three times is %s", got)
	}
	g.fails("could not be found in the database", "getent", "database", "passwd", "key", "nobody-here")
	g.fails("database unknown", "getent", "database", "nonsense", "key", "x")
	g.fails("Enumeration not supported", "getent", "database", "initgroups")
	g.fails("begin with a dash", "getent", "database", "passwd", "key", "--usage")
}

func TestPackageFacts(t *testing.T) {
	g := newTarget(t)
	r := g.same("package_facts")
	p, _ := factOf(r, "packages", "dpkg").([]any)
	if len(p) != 1 {
		t.Fatalf("dpkg is %s", value.Repr(p))
	}
	version := g.sh("dpkg-query -W -f '${Version}|${Architecture}|${Section}' dpkg")
	d := p[0].(*value.Dict)
	at := func(k string) string { v, _ := d.Get(k); return value.Str(v) }
	if got := at("version") + "|" + at("arch") + "|" + at("category"); got != version || at("name") != "dpkg" ||
		at("source") != "apt" {
		t.Errorf("got %s, want %s", value.Repr(d), version)
	}
	count := g.sh("dpkg-query -W -f '${db:Status-Abbrev}\\n' | grep -c '^[ih]i'")
	total := 0
	for _, v := range factOf(r, "packages").(*value.Dict).All() {
		total += len(v.([]any))
	}
	if value.Str(total) != count {
		t.Errorf("%d packages, and dpkg knows %s", total, count)
	}
	g.fails("Could not detect a supported package manager", "package_facts", "manager", "apk")
	g.fails("must be one of", "package_facts", "manager", "guix")
}

func TestServiceFacts(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("systemctl unmask -q kk-masked.service; rm -f /etc/systemd/system/kk-*; systemctl daemon-reload")
	})
	g.sh("printf '[Service]\\nExecStart=true\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/kk-idle.service; systemctl mask -q kk-masked.service; systemctl daemon-reload")
	r := g.same("service_facts")
	for name, want := range map[string]string{
		"ssh.service":       "{'name': 'ssh.service', 'state': 'running', 'source': 'systemd', 'status': 'enabled'}",
		"kk-idle.service":   "{'name': 'kk-idle.service', 'state': 'inactive', 'source': 'systemd', 'status': 'disabled'}",
		"kk-masked.service": "{'name': 'kk-masked.service', 'state': 'inactive', 'source': 'systemd', 'status': 'masked'}",
	} {
		if got := value.Repr(factOf(r, "services", name)); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
