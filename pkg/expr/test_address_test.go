package expr_test

import (
	"strings"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// The expected lists are the results of ansible.utils, except for the netmask 0.0.0.0, which it does not support.
func TestAddressTests(t *testing.T) {
	c := &expr.Call{Env: expr.New(expr.Options{}, everything()...)}
	all := strings.Fields(`10.0.0.1 10.0.0.0/8 10.0.0.1/8 100.64.0.1 192.0.0.8 192.0.0.9 8.8.8.8 127.9.0.1 224.0.0.1 240.0.0.1 0.0.0.0 ::1
		fe80::1 2001:db8::/32 2002:c000:204::1 2001:0:1::1 ::ffff:8.8.8.8 ::ffff:10.0.0.1 2001:4860::8888 ff02::1 4000::1 x 1.2.3.04
		255.255.0.0 0.0.255.255 255.0.255.0 02:16:3e:e4:16:f3 0216.3EE4.16f3 02163ee416f3 02:16`)
	for _, tt := range []struct {
		test string
		args []any
		want string
	}{
		{"ip", nil, "10.0.0.1 10.0.0.0/8 100.64.0.1 192.0.0.8 192.0.0.9 8.8.8.8 127.9.0.1 224.0.0.1 240.0.0.1 0.0.0.0 ::1 fe80::1 2001:db8::/32 2002:c000:204::1 2001:0:1::1 ::ffff:8.8.8.8 ::ffff:10.0.0.1 2001:4860::8888 ff02::1 4000::1 255.255.0.0 0.0.255.255 255.0.255.0"},
		{"ansible.utils.ipv6", nil, "::1 fe80::1 2001:db8::/32 2002:c000:204::1 2001:0:1::1 ::ffff:8.8.8.8 ::ffff:10.0.0.1 2001:4860::8888 ff02::1 4000::1"},
		{"ipv4_address", nil, "10.0.0.1 100.64.0.1 192.0.0.8 192.0.0.9 8.8.8.8 127.9.0.1 224.0.0.1 240.0.0.1 0.0.0.0 255.255.0.0 0.0.255.255 255.0.255.0"},
		{"private", nil, "10.0.0.1 192.0.0.8 127.9.0.1 240.0.0.1 0.0.0.0 ::1 fe80::1 2002:c000:204::1 2001:0:1::1 ::ffff:10.0.0.1 255.255.0.0 0.0.255.255 255.0.255.0"},
		{"public", nil, "192.0.0.9 8.8.8.8 224.0.0.1 ::ffff:8.8.8.8 2001:4860::8888 ff02::1 4000::1"},
		{"reserved", nil, "240.0.0.1 ::1 ::ffff:8.8.8.8 ::ffff:10.0.0.1 4000::1 255.255.0.0 255.0.255.0"},
		{"loopback", nil, "127.9.0.1 ::1"},
		{"multicast", nil, "224.0.0.1 ff02::1"},
		{"unspecified", nil, "0.0.0.0"},
		{"ipv6_ipv4_mapped", nil, "::ffff:8.8.8.8 ::ffff:10.0.0.1"},
		{"ipv6_sixtofour", nil, "2002:c000:204::1"},
		{"ipv6_teredo", nil, "2001:0:1::1"},
		{"ipv4_netmask", nil, "0.0.0.0 255.255.0.0"},
		{"ipv4_hostmask", nil, "0.0.255.255"},
		{"mac", nil, "02:16:3e:e4:16:f3 0216.3EE4.16f3 02163ee416f3"},
		{"in_network", []any{"10.0.0.0/8"}, "10.0.0.1 10.0.0.0/8"},
		{"subnet_of", []any{"10.0.0.1/8"}, ""},
		{"subnet_of", []any{"2000::/3"}, "2001:db8::/32 2002:c000:204::1 2001:0:1::1 2001:4860::8888"},
		{"supernet_of", []any{"10.0.0.0/24"}, "10.0.0.0/8"},
		{"in_any_network", []any{[]any{"10.0.0.0/8", "10.0.0.0/24", "x", "fe80::/10"}}, "10.0.0.1 10.0.0.0/8 fe80::1"},
		{"in_one_network", []any{[]any{"10.0.0.0/8", "10.0.0.0/24", "x", "fe80::/10"}}, "10.0.0.0/8 fe80::1"},
	} {
		var got []string
		for _, s := range all {
			ok, err := c.Test(tt.test, s, expr.Args{Positional: tt.args})
			if err != nil {
				t.Fatalf("%s of %s: %v", tt.test, s, err)
			}
			if ok {
				got = append(got, s)
			}
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s %v:\n got %s\nwant %s", tt.test, tt.args, text, tt.want)
		}
	}
	for _, odd := range []any{nil, 5, []any{"10.0.0.1"}, value.NewDict()} {
		if ok, err := c.Test("ip", odd, expr.Args{}); ok || err != nil {
			t.Errorf("%v: %v, %v", odd, ok, err)
		}
	}
}
