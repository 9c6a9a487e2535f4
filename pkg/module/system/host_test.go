package system

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestHostnameInCheckMode(t *testing.T) {
	o := moduletest.Options{Check: true, Diff: true}
	r := run(t, "hostname", o, "name", "kk-other.example.org")
	if domain, _ := r.Facts.Get("ansible_domain"); !r.Changed || domain != "example.org" || len(r.Diff) != 1 {
		t.Errorf("got %+v", r)
	}
	if f := hostnameFacts("a", "a.b.c"); value.Repr(f) != "{'ansible_hostname': 'a', 'ansible_nodename': 'a', 'ansible_fqdn': 'a.b.c', 'ansible_domain': 'b.c'}" {
		t.Errorf("got %s", value.Repr(f))
	}
	for _, bad := range []string{"a b", "-x", "x-", strings.Repeat("a", 65)} {
		fails(t, "host name", "hostname", o, "name", bad)
	}
	fails(t, "missing required arguments: name", "hostname", o, "name", "")
}

func TestModprobeBadNames(t *testing.T) {
	fails(t, "must be the name of a kernel module", "modprobe", moduletest.Options{Check: true}, "name", "a;b")
	fails(t, "NAME=VALUE", "modprobe", moduletest.Options{Check: true}, "name", "a", "params", "x=*")
	r := run(t, "modprobe", moduletest.Options{Check: true}, "name", "kk_no_such_module", "persistent", "present",
		"params", "a=1")
	if !r.Changed || moduletest.Field(r, "params") != "a=1" {
		t.Errorf("got %+v", r)
	}
}
