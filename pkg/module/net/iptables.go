package net

import (
	"context"
	_ "embed"
	"errors"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

//go:embed iptables.sh
var iptablesScript string

// Iptables is the module iptables.
type Iptables struct {
	Table       string    `kk:"table" default:"filter" choices:"filter,nat,mangle,raw,security" doc:"the table"`
	State       string    `kk:"state" default:"present" choices:"absent,present" doc:"whether the rule (or the chain) must be there"`
	Action      string    `kk:"action" default:"append" choices:"append,insert" doc:"where a rule goes that is not there yet"`
	RuleNum     *int      `kk:"rule_num" doc:"with action: insert, the number that the rule gets"`
	IPVersion   string    `kk:"ip_version" default:"ipv4" choices:"ipv4,ipv6,both" doc:"which of iptables and ip6tables"`
	Chain       string    `kk:"chain" doc:"the chain, such as INPUT; needed unless flush is for the whole table"`
	Protocol    string    `kk:"protocol" doc:"tcp, udp, icmp, a number, ...; as all arguments of a rule, with ! before it for the opposite"`
	Source      string    `kk:"source" doc:"address, network or name that packets come from"`
	Destination string    `kk:"destination" doc:"address, network or name that they go to"`
	TCPFlags    *tcpFlags `kk:"tcp_flags" doc:"which flags to look at, and which of them are set"`
	Match       []string  `kk:"match" doc:"extensions to load (-m)"`
	Jump        string    `kk:"jump" doc:"target: ACCEPT, DROP, a chain, ..."`
	Gateway     string    `kk:"gateway" doc:"with jump: TEE, the host that gets a copy"`
	LogPrefix   string    `kk:"log_prefix" doc:"text before log messages; means jump: LOG"`
	LogLevel    string    `kk:"log_level" doc:"level of log messages, by name or number"`
	Goto        string    `kk:"goto" doc:"chain to go on in, without coming back"`
	In          string    `kk:"in_interface" doc:"interface that packets come in by"`
	Out         string    `kk:"out_interface" doc:"interface that they leave by"`
	Fragment    string    `kk:"fragment" doc:"! for packets that are no further fragments, anything else for those that are"`
	Counters    string    `kk:"set_counters" doc:"counters to begin with: PACKETS BYTES"`
	SourcePort  string    `kk:"source_port" doc:"port or range (first:last) that packets come from"`
	DestPort    string    `kk:"destination_port" doc:"port or range that they go to"`
	DestPorts   []string  `kk:"destination_ports" doc:"several ports and ranges that they go to"`
	ToPorts     string    `kk:"to_ports" doc:"port to send to instead, for REDIRECT"`
	ToDest      string    `kk:"to_destination" doc:"address to send to instead, for DNAT"`
	ToSource    string    `kk:"to_source" doc:"address to send from instead, for SNAT"`
	Syn         string    `kk:"syn" default:"ignore" choices:"ignore,match,negate" doc:"whether packets open a TCP connection"`
	DSCP        string    `kk:"set_dscp_mark" doc:"DSCP mark to set"`
	DSCPClass   string    `kk:"set_dscp_mark_class" doc:"DSCP class to set"`
	Comment     string    `kk:"comment" doc:"a comment, part of the rule"`
	CTState     []string  `kk:"ctstate" choices:"DNAT,ESTABLISHED,INVALID,NEW,RELATED,SNAT,UNTRACKED" doc:"states of connections"`
	SrcRange    string    `kk:"src_range" doc:"first-last of the addresses that packets come from"`
	DstRange    string    `kk:"dst_range" doc:"first-last of the addresses that they go to"`
	MatchSet    string    `kk:"match_set" doc:"name of an ipset"`
	SetFlags    string    `kk:"match_set_flags" doc:"which addresses are looked up in match_set: src, dst, or two of them with a comma between"`
	Limit       string    `kk:"limit" doc:"average rate, such as 3/minute"`
	LimitBurst  string    `kk:"limit_burst" doc:"packets before limit counts"`
	UID         string    `kk:"uid_owner" doc:"user whose processes send"`
	GID         string    `kk:"gid_owner" doc:"group whose processes send"`
	RejectWith  string    `kk:"reject_with" doc:"ICMP message to answer with; means jump: REJECT"`
	ICMPType    string    `kk:"icmp_type" doc:"kind of ICMP message"`
	Flush       bool      `kk:"flush" default:"no" doc:"remove all rules of chain, or of the table"`
	Policy      string    `kk:"policy" choices:"ACCEPT,DROP,QUEUE,RETURN" doc:"what becomes of packets that no rule of chain takes"`
	Wait        string    `kk:"wait" doc:"seconds to wait for another iptables"`
	ManageChain bool      `kk:"chain_management" default:"no" doc:"make chain if it is missing; without a rule, chain itself is made or (if it is empty) removed"`
	Numeric     bool      `kk:"numeric" default:"no" doc:"kept for playbooks that have it: addresses are never looked up"`
}

// tcpFlags are the arguments of --tcp-flags.
type tcpFlags struct {
	Flags []string `kk:"flags,required" doc:"flags to look at"`
	Set   []string `kk:"flags_set,required" doc:"those that are set"`
}

func iptablesSpec() module.Spec {
	return module.Spec{
		Name:    "iptables",
		Summary: "Keep a rule, a chain or a policy of iptables.",
		Notes: []string{
			"What is changed lasts until the host restarts: keep it with the host's own means, such as the package iptables-persistent.",
			"A rule is there if iptables -C finds it; where in its chain it stands does not count. A flush always counts as a change.",
		},
		Examples: []string{
			"- name: Let the web in\n  iptables:\n    chain: INPUT\n    protocol: tcp\n    destination_ports: [\"80\", \"443\"]\n    ctstate: NEW\n    jump: ACCEPT\n    comment: the web",
			"- name: Forward port 80 to an unprivileged one\n  iptables:\n    table: nat\n    chain: PREROUTING\n    protocol: tcp\n    destination_port: \"80\"\n    jump: REDIRECT\n    to_ports: \"8080\"",
			"- name: A chain of its own, first of all\n  iptables:\n    chain: APP\n    chain_management: true\n    ip_version: both",
		},
		Returns: []module.Return{
			{Key: "rule", Type: "str", Doc: "the rule as iptables gets it"},
			{Key: "table", Type: "str", Doc: "the table"},
			{Key: "chain", Type: "str", Doc: "the chain"},
			{Key: "state", Type: "str", Doc: "present or absent"},
			{Key: "ip_version", Type: "str", Doc: "the argument"},
			{Key: "flush", Type: "bool", Doc: "the argument"},
			{Key: "chain_management", Type: "bool", Doc: "the argument"},
		},
		New: func() module.Runner { return new(Iptables) },
	}
}

// Rules implements schema.Ruled.
func (*Iptables) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("chain", "flush").Says("Either chain or flush parameter must be specified."),
		schema.AtMostOne("flush", "policy"),
		schema.Chooses("action", "insert").With("rule_num").Without("flush", "policy").Says("rule_num needs action: insert"),
		schema.Looks("src, dst or two of them with a comma between", setFlags.MatchString, "match_set_flags"),
		schema.AllOrNone("match_set", "match_set_flags"),
		schema.Chooses("jump", "LOG").With("log_prefix", "log_level").Says("log_prefix and log_level are for jump: LOG"),
		schema.Looks("the name of a chain", schema.NoDash, "chain"),
	}
}

// Run implements module.Runner.
func (m *Iptables) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	r := module.Result{Data: value.NewDict()}
	for _, tool := range []string{"iptables", "ip6tables"} {
		if tool == "iptables" && m.IPVersion == "ipv6" || tool == "ip6tables" && m.IPVersion == "ipv4" {
			continue
		}
		if err := m.apply(ctx, c, tool, &r); err != nil {
			return module.Result{}, err
		}
	}
	return r, nil
}

// apply does the task with one tool, and adds to the result.
func (m *Iptables) apply(ctx context.Context, c *module.Call, tool string, r *module.Result) error {
	rule := m.rule(tool)
	if err := m.check(rule); err != nil {
		return err
	}
	s := hostscript.New(iptablesScript, `iptables_main "$@"`).Args(m).Set("tool", tool)
	s.Words = rule
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return err
	}
	text := shell.Join(rule...)
	r.Changed = r.Changed || a.Changed()
	r.Data.Merge(value.NewDict("rule", text, "table", m.Table, "chain", m.Chain, "state", m.State,
		"ip_version", m.IPVersion, "flush", m.Flush, "chain_management", m.ManageChain))
	if c.Diff && a.Changed() && text != "" {
		d := event.Diff{BeforeHeader: tool + " " + m.Table + " " + m.Chain, Before: "", After: text + "\n"}
		if m.State == "absent" {
			d.Before, d.After = d.After, d.Before
		}
		d.AfterHeader = d.BeforeHeader
		r.Diff = append(r.Diff, d)
	}
	return nil
}

var setFlags = regexp.MustCompile(`^(src|dst)(,(src|dst))?$`)

func (m *Iptables) check(rule []string) error {
	switch {
	case m.Flush || m.Policy != "":
		return nil
	case len(rule) == 0 && !m.ManageChain:
		return errors.New("the task has no rule: give at least a jump, or chain_management for the chain itself")
	}
	return nil
}

// ruleWords collects the words of a rule.
type ruleWords []string

// add appends an option, with ! before it if its text begins with one.
func (w *ruleWords) add(flag, text string) {
	switch rest, not := strings.CutPrefix(text, "!"); {
	case text == "":
	case not:
		*w = append(*w, "!", flag, strings.TrimSpace(rest))
	default:
		*w = append(*w, flag, text)
	}
}

// extension loads an extension, unless the task named it already.
func (m *Iptables) extension(w *ruleWords, needed bool, name string) {
	if needed && !slices.Contains(m.Match, name) {
		*w = append(*w, "-m", name)
	}
}

// rule is the rule as a tool gets it.
func (m *Iptables) rule(tool string) []string {
	var w ruleWords
	w.add("-p", m.Protocol)
	w.add("-s", m.Source)
	w.add("-d", m.Destination)
	for _, name := range m.Match {
		w.add("-m", name)
	}
	if m.TCPFlags != nil {
		w = append(w, "--tcp-flags", strings.Join(m.TCPFlags.Flags, ","), strings.Join(m.TCPFlags.Set, ","))
	}
	w.add("-i", m.In)
	w.add("-o", m.Out)
	switch m.Fragment {
	case "":
	case "!":
		w = append(w, "!", "-f")
	default:
		w = append(w, "-f")
	}
	if m.Counters != "" {
		w = append(append(w, "-c"), strings.Fields(m.Counters)...)
	}
	w.add("--source-port", m.SourcePort)
	w.add("--destination-port", m.DestPort)
	if len(m.DestPorts) > 0 {
		m.extension(&w, true, "multiport")
		w.add("--dports", strings.Join(m.DestPorts, ","))
	}
	m.matches(&w, tool)
	m.target(&w)
	return w
}

// matches are the options of extensions.
func (m *Iptables) matches(w *ruleWords, tool string) {
	switch m.Syn {
	case "match":
		*w = append(*w, "--syn")
	case "negate":
		*w = append(*w, "!", "--syn")
	}
	if len(m.CTState) > 0 {
		states := strings.Join(m.CTState, ",")
		if slices.Contains(m.Match, "state") {
			w.add("--state", states)
		} else {
			m.extension(w, true, "conntrack")
			w.add("--ctstate", states)
		}
	}
	m.extension(w, m.SrcRange+m.DstRange != "", "iprange")
	w.add("--src-range", m.SrcRange)
	w.add("--dst-range", m.DstRange)
	if m.MatchSet != "" {
		m.extension(w, true, "set")
		w.add("--match-set", m.MatchSet)
		*w = append(*w, m.SetFlags)
	}
	m.extension(w, m.Limit+m.LimitBurst != "", "limit")
	w.add("--limit", m.Limit)
	w.add("--limit-burst", m.LimitBurst)
	m.extension(w, m.UID+m.GID != "", "owner")
	w.add("--uid-owner", m.UID)
	w.add("--gid-owner", m.GID)
	icmp := "--icmp-type"
	if tool == "ip6tables" {
		icmp = "--icmpv6-type"
	}
	w.add(icmp, m.ICMPType)
	if m.Comment != "" {
		m.extension(w, true, "comment")
		*w = append(*w, "--comment", m.Comment)
	}
}

// target is what becomes of a packet.
func (m *Iptables) target(w *ruleWords) {
	jump := m.Jump
	switch {
	case jump == "" && m.RejectWith != "":
		jump = "REJECT"
	case jump == "" && m.LogPrefix+m.LogLevel != "":
		jump = "LOG"
	}
	w.add("-j", jump)
	for _, o := range []struct{ flag, text string }{
		{"--gateway", m.Gateway}, {"--log-prefix", m.LogPrefix}, {"--log-level", m.LogLevel}, {"--to-ports", m.ToPorts},
		{"--to-destination", m.ToDest}, {"--to-source", m.ToSource}, {"--set-dscp", m.DSCP}, {"--set-dscp-class", m.DSCPClass},
		{"--reject-with", m.RejectWith},
	} {
		if o.text != "" {
			*w = append(*w, o.flag, o.text)
		}
	}
	w.add("-g", m.Goto)
}
