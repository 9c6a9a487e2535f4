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
	Table       string    `kk:"table" default:"filter" choices:"filter,nat,mangle,raw,security" doc:"table to change"`
	State       string    `kk:"state" default:"present" choices:"absent,present" doc:"whether the rule (or the chain) should exist"`
	Action      string    `kk:"action" default:"append" choices:"append,insert" doc:"where a new rule is added"`
	RuleNum     *int      `kk:"rule_num" doc:"with action: insert, the number of the new rule"`
	IPVersion   string    `kk:"ip_version" default:"ipv4" choices:"ipv4,ipv6,both" doc:"ipv4 uses iptables, ipv6 uses ip6tables"`
	Chain       string    `kk:"chain" doc:"chain, such as INPUT; needed unless flush is for the whole table"`
	Protocol    string    `kk:"protocol" doc:"tcp, udp, icmp, a number, ...; like every argument of a rule, a leading ! negates it"`
	Source      string    `kk:"source" doc:"source address, network or host name"`
	Destination string    `kk:"destination" doc:"destination address, network or host name"`
	TCPFlags    *tcpFlags `kk:"tcp_flags" doc:"TCP flags to examine, and those of them that must be set"`
	Match       []string  `kk:"match" doc:"match extensions to load (-m)"`
	Jump        string    `kk:"jump" doc:"target: ACCEPT, DROP, a chain, ..."`
	Gateway     string    `kk:"gateway" doc:"with jump: TEE, the host that receives a copy"`
	LogPrefix   string    `kk:"log_prefix" doc:"prefix of log messages; implies jump: LOG"`
	LogLevel    string    `kk:"log_level" doc:"level of log messages, by name or number"`
	Goto        string    `kk:"goto" doc:"chain to continue in, without returning"`
	In          string    `kk:"in_interface" doc:"interface that packets arrive on"`
	Out         string    `kk:"out_interface" doc:"interface that packets leave by"`
	Fragment    string    `kk:"fragment" doc:"matches the second and further fragments of packets; ! negates it"`
	Counters    string    `kk:"set_counters" doc:"initial values of the counters: PACKETS BYTES"`
	SourcePort  string    `kk:"source_port" doc:"source port or range (first:last)"`
	DestPort    string    `kk:"destination_port" doc:"destination port or range (first:last)"`
	DestPorts   []string  `kk:"destination_ports" doc:"list of destination ports and ranges"`
	ToPorts     string    `kk:"to_ports" doc:"port to redirect to, for REDIRECT"`
	ToDest      string    `kk:"to_destination" doc:"new destination address, for DNAT"`
	ToSource    string    `kk:"to_source" doc:"new source address, for SNAT"`
	Syn         string    `kk:"syn" default:"ignore" choices:"ignore,match,negate" doc:"match packets that open a TCP connection, or (negate) all others"`
	DSCP        string    `kk:"set_dscp_mark" doc:"DSCP mark to set"`
	DSCPClass   string    `kk:"set_dscp_mark_class" doc:"DSCP class to set"`
	Comment     string    `kk:"comment" doc:"comment of the rule"`
	CTState     []string  `kk:"ctstate" choices:"DNAT,ESTABLISHED,INVALID,NEW,RELATED,SNAT,UNTRACKED" doc:"connection states to match"`
	SrcRange    string    `kk:"src_range" doc:"source address range: FIRST-LAST"`
	DstRange    string    `kk:"dst_range" doc:"destination address range: FIRST-LAST"`
	MatchSet    string    `kk:"match_set" doc:"name of an ipset"`
	SetFlags    string    `kk:"match_set_flags" doc:"addresses to look up in match_set: src, dst, or two of them separated by a comma"`
	Limit       string    `kk:"limit" doc:"maximum average rate, such as 3/minute"`
	LimitBurst  string    `kk:"limit_burst" doc:"number of packets before limit applies"`
	UID         string    `kk:"uid_owner" doc:"user who owns the sending process"`
	GID         string    `kk:"gid_owner" doc:"group that owns the sending process"`
	RejectWith  string    `kk:"reject_with" doc:"ICMP message to reject with; implies jump: REJECT"`
	ICMPType    string    `kk:"icmp_type" doc:"ICMP type to match"`
	Flush       bool      `kk:"flush" default:"no" doc:"remove all rules of chain, or of the table"`
	Policy      string    `kk:"policy" choices:"ACCEPT,DROP,QUEUE,RETURN" doc:"policy of chain, for packets that match no rule"`
	Wait        string    `kk:"wait" doc:"seconds to wait for the lock of another iptables process"`
	ManageChain bool      `kk:"chain_management" default:"no" doc:"create chain if it does not exist; without a rule, the chain itself is created or, if it is empty, removed"`
	Numeric     bool      `kk:"numeric" default:"no" doc:"without effect: addresses are never resolved to names"`
}

// tcpFlags are the arguments of --tcp-flags.
type tcpFlags struct {
	Flags []string `kk:"flags,required" doc:"flags to examine"`
	Set   []string `kk:"flags_set,required" doc:"flags of these that must be set"`
}

func iptablesSpec() module.Spec {
	return module.Spec{
		Name:    "iptables",
		Summary: "Manages rules, chains and policies of iptables.",
		Notes: []string{
			"Changes last until the host restarts: save them with a tool of the host, such as the package iptables-persistent.",
			"A rule exists if iptables -C finds it; its position in the chain is not compared. A flush always counts as a " +
				"change.",
		},
		Examples: []string{
			"- name: Allow HTTP and HTTPS\n  iptables:\n    chain: INPUT\n    protocol: tcp\n" +
				"    destination_ports: [\"80\", \"443\"]\n    ctstate: NEW\n    jump: ACCEPT\n    comment: the web",
			"- name: Redirect port 80 to an unprivileged port\n  iptables:\n    table: nat\n    chain: PREROUTING\n" +
				"    protocol: tcp\n    destination_port: \"80\"\n    jump: REDIRECT\n    to_ports: \"8080\"",
			"- name: Create a chain\n  iptables:\n    chain: APP\n    chain_management: true\n    ip_version: both",
		},
		Returns: []module.Return{
			{Key: "rule", Type: "str", Doc: "arguments of the rule, as passed to iptables"},
			{Key: "table", Type: "str", Doc: "the argument"},
			{Key: "chain", Type: "str", Doc: "the argument"},
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
		schema.Looks("src, dst or two of them separated by a comma", setFlags.MatchString, "match_set_flags"),
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

// apply runs the task with one tool, and adds to the result.
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
		return errors.New("the task has no rule: set at least jump, or chain_management for the chain itself")
	}
	return nil
}

// ruleArgs collects the arguments of a rule.
type ruleArgs []string

// add appends an option, with ! before it if its text begins with one.
func (w *ruleArgs) add(flag, text string) {
	switch rest, not := strings.CutPrefix(text, "!"); {
	case text == "":
	case not:
		*w = append(*w, "!", flag, strings.TrimSpace(rest))
	default:
		*w = append(*w, flag, text)
	}
}

// extension loads an extension, unless the task already names it.
func (m *Iptables) extension(w *ruleArgs, needed bool, name string) {
	if needed && !slices.Contains(m.Match, name) {
		*w = append(*w, "-m", name)
	}
}

// rule is the rule in the form of the command line.
func (m *Iptables) rule(tool string) []string {
	var w ruleArgs
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
func (m *Iptables) matches(w *ruleArgs, tool string) {
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

// target is the action of the rule.
func (m *Iptables) target(w *ruleArgs) {
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
		{"--to-destination", m.ToDest}, {"--to-source", m.ToSource}, {"--set-dscp", m.DSCP},
		{"--set-dscp-class", m.DSCPClass},
		{"--reject-with", m.RejectWith},
	} {
		if o.text != "" {
			*w = append(*w, o.flag, o.text)
		}
	}
	w.add("-g", m.Goto)
}
