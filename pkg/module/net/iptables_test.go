package net

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// What the rules do is tested on hosts (test/e2e); here is how they are spelt.
func TestIptablesRule(t *testing.T) {
	for want, args := range map[string]*value.Dict{
		"-p tcp -m multiport --dports 80,8000:8080 -m conntrack --ctstate NEW,RELATED -m comment --comment 'the web' -j ACCEPT": value.NewDict(
			"protocol", "tcp", "destination_ports", []any{"80", "8000:8080"}, "ctstate", "NEW,RELATED", "comment", "the web",
			"jump", "ACCEPT"),
		"'!' -s 10.0.0.0/8 '!' -i lo -m iprange --src-range 1.1.1.1-1.1.1.9 -j REJECT --reject-with tcp-reset": value.NewDict(
			"source", "!10.0.0.0/8", "in_interface", "! lo", "src_range", "1.1.1.1-1.1.1.9", "reject_with", "tcp-reset"),
		"-m state --state ESTABLISHED -g OTHER": value.NewDict("match", "state", "ctstate", "ESTABLISHED", "goto", "OTHER"),
		"-p tcp --tcp-flags ALL ACK,RST '!' --syn -j DROP": value.NewDict("protocol", "tcp", "jump", "DROP", "syn", "negate",
			"tcp_flags", value.NewDict("flags", "ALL", "flags_set", []any{"ACK", "RST"})),
		"-m limit --limit 2/s --limit-burst 5 -j LOG --log-prefix 'x: ' --log-level info": value.NewDict("limit", "2/s",
			"limit_burst", 5, "log_prefix", "x: ", "log_level", "info"),
		"-p icmp -m set --match-set s src,dst -m owner --uid-owner 0 --icmp-type echo-request": value.NewDict("protocol",
			"icmp", "icmp_type", "echo-request", "uid_owner", 0, "match_set", "s", "match_set_flags", "src,dst"),
	} {
		m := new(Iptables)
		args.Set("chain", "INPUT")
		if err := schema.Decode(m, args, &redact.Set{}); err != nil {
			t.Fatal(err)
		}
		if got := shell.Join(m.rule("iptables")...); got != want {
			t.Errorf("the rule is\n%s, not\n%s", got, want)
		}
	}
}

func TestArgumentsThatDoNotGoTogether(t *testing.T) {
	specs := Modules()
	for text, c := range map[string]struct {
		module string
		args   *value.Dict
	}{
		"Either chain or flush":      {"iptables", value.NewDict("jump", "DROP")},
		"exclusive: flush|policy":    {"iptables", value.NewDict("chain", "INPUT", "flush", true, "policy", "DROP")},
		"needs action: insert":       {"iptables", value.NewDict("chain", "INPUT", "jump", "DROP", "rule_num", 1)},
		"match_set, match_set_flags": {"iptables", value.NewDict("chain", "INPUT", "match_set", "x")},
		"must be src, dst": {"iptables",
			value.NewDict("chain", "INPUT", "match_set", "x", "match_set_flags", "up")},
		"has no rule":       {"iptables", value.NewDict("chain", "INPUT")},
		"are for jump: LOG": {"iptables", value.NewDict("chain", "INPUT", "jump", "DROP", "log_prefix", "x")},
	} {
		_, err := moduletest.Try(t, moduletest.Find(t, specs, c.module), c.args,
			moduletest.Options{Conn: moduletest.Unreachable{}})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s %s ended with %v, not %q", c.module, value.Repr(c.args), err, text)
		}
	}
}
