package net

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed firewalld.sh
var firewalldScript string

// Firewalld is the module firewalld.
type Firewalld struct {
	Service    string        `kk:"service" doc:"a service that firewalld knows"`
	Protocol   string        `kk:"protocol" doc:"a protocol"`
	Port       string        `kk:"port" doc:"port or range, with its protocol: 8080/tcp, 161-162/udp"`
	Forward    []portForward `kk:"port_forward" doc:"port to forward"`
	RichRule   string        `kk:"rich_rule" doc:"a rule in firewalld's rich language"`
	Source     string        `kk:"source" doc:"address or network whose packets belong to zone"`
	Interface  string        `kk:"interface" doc:"interface whose packets belong to zone"`
	ICMPBlock  string        `kk:"icmp_block" doc:"an ICMP type to block"`
	Inversion  *bool         `kk:"icmp_block_inversion" doc:"whether icmp_block lists allowed types instead"`
	Masquerade *bool         `kk:"masquerade" doc:"enable masquerading; with state: disabled, disable it"`
	ForwardAll *bool         `kk:"forward" doc:"forward packets between interfaces of zone"`
	Target     string        `kk:"target" choices:"default,ACCEPT,DROP,%%REJECT%%" doc:"target of zone, for packets that match no rule; needs permanent"`
	Zone       string        `kk:"zone" doc:"the zone. Default: firewalld's own"`
	Permanent  *bool         `kk:"permanent" doc:"make the change permanent. Default: no; yes with offline or target, or for zone itself"`
	Immediate  bool          `kk:"immediate" default:"no" doc:"with permanent: apply it now too"`
	State      string        `kk:"state,required" choices:"absent,disabled,enabled,present" doc:"enabled or disabled; present and absent are for zone itself and for target"`
	Timeout    int           `kk:"timeout" default:"0" doc:"seconds after which a non-permanent change is reverted; 0 means never"`
	Offline    bool          `kk:"offline" default:"no" doc:"change the permanent settings even if firewalld is not running"`
}

// portForward is one element of the argument port_forward.
type portForward struct {
	Port    string `kk:"port,required" doc:"the port"`
	Proto   string `kk:"proto,required" choices:"tcp,udp" doc:"its protocol"`
	ToPort  string `kk:"toport,required" doc:"where it is sent"`
	Address string `kk:"toaddr" doc:"the host that it is sent to. Default: this one"`
}

func firewalldSpec() module.Spec {
	return module.Spec{
		Name: "firewalld", Collection: "ansible.posix",
		Summary: "Manages services, ports and rules of firewalld.",
		Notes: []string{
			"The host needs firewall-cmd; with offline and firewalld stopped, firewall-offline-cmd.",
			"Without permanent the change lasts until firewalld is reloaded; with permanent alone it applies from the next " +
				"reload on: set immediate too.",
		},
		Examples: []string{
			"- name: Allow HTTPS permanently\n  firewalld:\n    service: https\n    zone: public\n    permanent: true\n" +
				"    immediate: true\n    state: enabled",
			"- name: Close a port\n  firewalld:\n    port: 8081/tcp\n    permanent: true\n    state: disabled",
		},
		Returns: []module.Return{
			{Key: "msg", Type: "str", Doc: "what was changed"},
			{Key: "zone", Type: "str", Doc: "the zone"},
		},
		New: func() module.Runner { return new(Firewalld) },
	}
}

// setting is one setting of firewall-cmd: how to query and change it, and its name in messages.
type setting struct {
	query, add, remove string
	what               string
	match              string // output of query in the desired state; "" if its exit status reports it
	off                bool   // the argument is no: enabled means absent
}

const (
	oneSetting = "can only operate on port, service, rich_rule, masquerade, icmp_block, icmp_block_inversion, " +
		"interface, source or target at once"
	zoneStates = "absent and present state can only be used in zone level operations; the others take enabled and " +
		"disabled"
	zonePermanent = "a zone and its target are only kept permanently"
)

// firewallSettings are the arguments of which a task sets one, with target last. Without any the task applies to
// the zone itself.
func firewallSettings() []string {
	return []string{
		"service", "protocol", "port", "port_forward", "rich_rule", "source", "interface", "icmp_block",
		"icmp_block_inversion", "masquerade", "forward", "target",
	}
}

// Rules implements schema.Ruled.
func (*Firewalld) Rules() schema.Rules {
	all := firewallSettings()
	return schema.Rules{
		schema.AtLeastOne(append(all, "zone")...),
		schema.AtMostOne(all...).Says(oneSetting),
		schema.Entries("port_forward", 1, 1).Says(oneSetting),
		schema.Chooses("state", "present", "absent").With("target").Says(zoneStates),
		schema.Chooses("state", "present", "absent").With("zone").Without(all...).Says(zoneStates),
		schema.Chooses("state", "enabled", "disabled").With(all[:len(all)-1]...).Says(zoneStates),
		schema.Chooses("permanent", true).With("target").Says(zonePermanent),
		schema.Chooses("permanent", true).With("zone").Without(all...).Says(zonePermanent),
		schema.Chooses("permanent", true).If("offline", true).Says("offline changes are permanent"),
		schema.Refuses("timeout").If("permanent", true).Says("timeout is not for permanent changes"),
		schema.Looks("PORT/PROTOCOL", func(port string) bool { return strings.Contains(port, "/") }, "port").
			Says("improper port format (missing protocol?)"),
	}
}

// Run implements module.Runner.
func (m *Firewalld) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	set := m.settings()[0]
	permanent := m.Offline || m.Target != "" || set.what == m.zoneItself()
	if m.Permanent != nil {
		permanent = *m.Permanent
	}
	on := (m.State == "enabled" || m.State == "present") != set.off
	act := set.add
	if !on {
		act = set.remove
	}
	s := hostscript.New(firewalldScript, "firewalld_main")
	s.Set("ask", set.query).Set("act", act).Set("match", set.match).Flag("absent", !on).Flag("may_offline", m.Offline)
	s.Flag("permanent", permanent).Flag("immediate", m.Immediate || !permanent)
	if set.what == m.zoneItself() {
		s.Flag("zoneless", true)
	} else {
		s.Set("zone", m.Zone)
	}
	if m.Timeout > 0 && on {
		s.Number("timeout", &m.Timeout)
	}
	r, a, err := c.Do(ctx, s)
	if err != nil {
		return r, fmt.Errorf("firewalld: %w", err)
	}
	m.describe(c, &r, a, set, permanent)
	return r, nil
}

// describe adds the change and the zone to the result.
func (m *Firewalld) describe(c *module.Call, r *module.Result, a hostscript.Answer, set setting, permanent bool) {
	r.Msg = "Non-permanent operation"
	switch {
	case permanent && m.Immediate:
		r.Msg = "Permanent and Non-Permanent(immediate) operation"
	case permanent:
		r.Msg = "Permanent operation"
	}
	r.Data.Set("zone", a.Get("zone"))
	if r.Changed {
		r.Msg += ", Changed " + set.what + " to " + m.State
	}
	before, after := "", set.what+"\n"
	if m.State == "disabled" || m.State == "absent" {
		before, after = after, before
	}
	c.Show(r, "zone "+a.Get("zone"), before, after)
}

func (m *Firewalld) zoneItself() string { return "zone " + m.Zone }

// settings returns the settings that the arguments refer to.
func (m *Firewalld) settings() []setting {
	var all []setting
	keep := func(given bool, option, text, what string) {
		if !given {
			return
		}
		tail := ""
		if text != "" {
			tail = "=" + text
		}
		all = append(all, setting{"--query-" + option + tail, "--add-" + option + tail, "--remove-" + option + tail, what,
			"", false})
	}
	keep(m.Service != "", "service", m.Service, "service "+m.Service)
	keep(m.Protocol != "", "protocol", m.Protocol, "protocol "+m.Protocol)
	keep(m.Port != "", "port", m.Port, "port "+m.Port)
	for _, f := range m.Forward {
		text := fmt.Sprintf("port=%s:proto=%s:toport=%s", f.Port, f.Proto, f.ToPort)
		if f.Address != "" {
			text += ":toaddr=" + f.Address
		}
		keep(true, "forward-port", text, "port_forward "+text)
	}
	keep(m.RichRule != "", "rich-rule", m.RichRule, "rich_rule "+m.RichRule)
	keep(m.Source != "", "source", m.Source, "source "+m.Source)
	keep(m.Interface != "", "interface", m.Interface, "interface "+m.Interface)
	keep(m.ICMPBlock != "", "icmp-block", m.ICMPBlock, "icmp-block "+m.ICMPBlock)
	for _, o := range []struct {
		on     *bool
		option string
	}{{m.Inversion, "icmp-block-inversion"}, {m.Masquerade, "masquerade"}, {m.ForwardAll, "forward"}} {
		if keep(o.on != nil, o.option, "", o.option); o.on != nil {
			all[len(all)-1].off = !*o.on
		}
	}
	if m.Target != "" {
		desired := m.Target
		if m.State == "absent" {
			desired = "default"
		}
		all = append(all, setting{"--get-target", "--set-target=" + desired, "--set-target=default", "target " + m.Target,
			desired, false})
	}
	if len(all) == 0 && m.Zone != "" {
		all = append(all, setting{"--info-zone=" + m.Zone, "--new-zone=" + m.Zone, "--delete-zone=" + m.Zone,
			m.zoneItself(), "", false})
	}
	return all
}
