package net

import (
	"context"
	_ "embed"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
)

//go:embed ufw.sh
var ufwScript string

// UFW is the module ufw.
type UFW struct {
	State     string `kk:"state" choices:"disabled,enabled,reloaded,reset" doc:"enabled and disabled apply now and at boot; reloaded reloads the rules; reset disables ufw and removes all rules"`
	Default   string `kk:"default,alias=policy" choices:"allow,deny,reject" doc:"default policy for packets in direction that match no rule"`
	Direction string `kk:"direction" choices:"in,incoming,out,outgoing,routed" doc:"for a rule: in or out; for default: incoming, outgoing or routed. Default: incoming"`
	Logging   string `kk:"logging" choices:"on,off,low,medium,high,full" doc:"what is logged"`
	Route     bool   `kk:"route" default:"no" doc:"the rule is for forwarded packets"`
	Rule      string `kk:"rule" choices:"allow,deny,limit,reject" doc:"action of the rule"`
	Log       bool   `kk:"log" default:"no" doc:"log new connections of the rule"`
	From      string `kk:"from_ip,alias=from|src" default:"any" doc:"source address or network"`
	FromPort  string `kk:"from_port" doc:"source port"`
	To        string `kk:"to_ip,alias=dest|to" default:"any" doc:"destination address or network"`
	ToPort    string `kk:"to_port,alias=port" doc:"destination port; ranges such as 60000:61000, several separated by commas"`
	Proto     string `kk:"proto,alias=protocol" choices:"ah,any,esp,ipv6,tcp,udp,gre,igmp,vrrp" doc:"protocol"`
	Name      string `kk:"name,alias=app" doc:"a profile of /etc/ufw/applications.d in place of to_port"`
	Delete    bool   `kk:"delete" default:"no" doc:"remove the rule instead"`
	Interface string `kk:"interface,alias=if" doc:"interface of direction"`
	In        string `kk:"interface_in,alias=if_in" doc:"interface that packets arrive on"`
	Out       string `kk:"interface_out,alias=if_out" doc:"interface that packets leave by"`
	Insert    *int   `kk:"insert" doc:"position of a new rule; 1 is the first"`
	Comment   string `kk:"comment" doc:"a comment on the rule"`
}

func ufwSpec() module.Spec {
	return module.Spec{
		Name: "ufw", Collection: "community.general",
		Summary: "Manages the firewall with ufw.",
		Notes: []string{
			"state, logging, default and rule can be combined: a reset is done first, enabling last. reset and reloaded " +
				"are always a change.",
			"Allow SSH before you enable it: ufw denies incoming packets by default.",
		},
		Examples: []string{
			"- name: Allow SSH\n  ufw:\n    rule: limit\n    port: \"22\"\n    proto: tcp\n- name: Deny the rest\n  ufw:\n" +
				"    state: enabled\n    default: deny",
			"- name: Allow etcd for the cluster network\n  ufw:\n    rule: allow\n    proto: tcp\n    src: 10.77.0.0/16\n" +
				"    port: 2379,2380\n    comment: etcd",
		},
		Returns: []module.Return{
			{Key: "commands", Type: "list of str", Doc: "the commands of ufw"},
			{Key: "msg", Type: "str", Doc: "output of ufw status verbose after the task"},
		},
		New: func() module.Runner { return new(UFW) },
	}
}

// Rules implements schema.Ruled.
func (*UFW) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("default", "logging", "rule", "state"),
		schema.AtMostOne("name", "proto"),
		schema.AtMostOne("name", "to_port"),
		schema.AtMostOne("interface", "interface_in"),
		schema.AtMostOne("interface", "interface_out"),
		schema.Chooses("direction", "in", "out").With("rule").
			Says("For rules, direction must be one of in and out, or direction must not be specified."),
		schema.Needs("direction").With("rule").With("interface").
			Says("Direction must be specified when creating a rule on an interface."),
		schema.AtMostOne("interface_in", "interface_out").If("route", false).
			Says("Only route rules can combine interface_in and interface_out"),
		schema.Chooses("direction", "incoming", "outgoing", "routed").With("default").
			Says(`For default, direction must be one of "outgoing", "incoming" and "routed", or direction must not be specified.`),
		schema.Looks("a word that does not begin with a dash", schema.NoDash,
			"from_ip", "from_port", "to_ip", "to_port", "name", "interface", "interface_in", "interface_out"),
	}
}

// Run implements module.Runner.
func (m *UFW) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	commands, err := m.commands()
	if err != nil {
		return module.Result{}, err
	}
	var code strings.Builder
	code.WriteString(ufwScript + "\nufw_begin\n")
	for _, words := range commands {
		code.WriteString("ufw_command " + shell.Join(words...) + "\n")
	}
	code.WriteString("ufw_end\n")
	r, a, err := c.Do(ctx, hostscript.New(code.String()))
	if err != nil {
		return r, err
	}
	done := []any{}
	for _, line := range a["command"] {
		done = append(done, line)
	}
	status, _, _ := strings.Cut(a.Get("after"), "\n###")
	r.Msg = status
	r.Data.Set("commands", done)
	if !c.Check {
		c.Show(&r, "ufw", a.Get("before")+"\n", a.Get("after")+"\n")
	}
	return r, nil
}

// commands returns the arguments of each ufw call.
func (m *UFW) commands() ([][]string, error) {
	rule := m.Rule != ""
	var all [][]string
	switch m.State {
	case "reset":
		all = append(all, []string{"--force", "reset"})
	case "disabled":
		all = append(all, []string{"--force", "disable"})
	}
	if m.Logging != "" {
		all = append(all, []string{"logging", m.Logging})
	}
	if m.Default != "" {
		direction := m.Direction
		if direction == "" {
			direction = "incoming"
		}
		all = append(all, []string{"default", m.Default, direction})
	}
	if rule {
		all = append(all, m.rule())
	}
	switch m.State {
	case "enabled":
		all = append(all, []string{"--force", "enable"})
	case "reloaded":
		all = append(all, []string{"reload"})
	}
	return all, nil
}

// rule returns the command for the rule.
func (m *UFW) rule() []string {
	var w []string
	add := func(words ...string) {
		if words[len(words)-1] != "" {
			w = append(w, words...)
		}
	}
	if m.Route {
		w = append(w, "route")
	}
	if m.Delete {
		w = append(w, "delete")
	} else if m.Insert != nil {
		add("insert", strconv.Itoa(*m.Insert))
	}
	w = append(w, m.Rule)
	switch {
	case m.In != "" || m.Out != "":
		add("in", "on", m.In)
		add("out", "on", m.Out)
	default:
		add(m.Direction)
		add("on", m.Interface)
	}
	if m.Log {
		w = append(w, "log")
	}
	add("proto", m.Proto)
	add("from", m.From)
	add("port", m.FromPort)
	add("to", m.To)
	add("port", m.ToPort)
	add("app", m.Name)
	if !m.Delete {
		add("comment", m.Comment)
	}
	return w
}
