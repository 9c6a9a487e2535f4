package simulated

import (
	"context"
	"crypto/md5"
	_ "embed"
	"encoding/hex"
	"fmt"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// recorded are the facts of a host with Debian, as setup gathered them.
//
//go:embed facts.json
var recorded []byte

func facts(_ context.Context, a *asked) (module.Result, error) {
	all, err := a.call.Share.Do("simulated facts", func() (any, error) { return value.FromJSON(recorded) })
	if err != nil {
		return module.Result{}, fmt.Errorf("recorded facts: %w", err)
	}
	d := all.(*value.Dict).Copy()
	name := a.call.Target
	id := md5.Sum([]byte(name))
	v4, v6 := a.variable("internal_ipv4"), a.variable("internal_ipv6")
	for key, v := range map[string]any{
		"nodename": name, "hostname": name, "fqdn": name, "machine_id": hex.EncodeToString(id[:]),
		"all_ipv4_addresses": present(v4), "all_ipv6_addresses": present(v6),
	} {
		d.Set(key, v)
	}
	if v4 != "" {
		d.Set("default_ipv4", value.NewDict("interface", "eth0", "address", v4, "gateway", "10.0.255.254", "prefix", "16"))
	}
	if v6 != "" {
		d.Set("default_ipv6", value.NewDict("interface", "eth0", "address", v6, "gateway", "fe80::1", "prefix", "64"))
	}
	if a.variable("simulated_isolated") != "" {
		d.Set("default_ipv4", value.NewDict())
		d.Set("default_ipv6", value.NewDict())
	}
	out := value.NewDict()
	for key, v := range d.All() {
		out.Set("ansible_"+value.Str(key), v)
	}
	return module.Result{Facts: out, FactKind: module.Gathered}, nil
}

func (a *asked) variable(name string) string {
	v, ok, err := a.call.Scope.Lookup(name)
	if !ok || err != nil || v == nil {
		return ""
	}
	return value.Str(v)
}

func present(s string) []any {
	if s == "" {
		return []any{}
	}
	return []any{s}
}
