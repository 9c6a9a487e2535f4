package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/inventory"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func (a *app) inventoryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "inventory", Short: "Show the hosts, groups and variables of an inventory"}
	for _, sub := range []struct {
		use, short string
		run        func(cmd *cobra.Command, s *session, in *inputs, args []string) error
	}{
		{"list [PATTERN...]", "List the hosts that match a pattern, with their groups", a.inventoryList},
		{"graph [GROUP]", "Show groups and hosts as a tree", a.inventoryGraph},
		{"host HOST", "Show the variables of a host as JSON", a.inventoryHost},
	} {
		in := &inputs{}
		c := &cobra.Command{Use: sub.use, Short: sub.short, RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.open(cmd.Context(), in)
			if err != nil {
				return err
			}
			a.diagnostics(s.diagnostics)
			return sub.run(cmd, s, in, args)
		}}
		in.flags(c.Flags())
		cmd.AddCommand(c)
	}
	return cmd
}

func (a *app) inventoryList(_ *cobra.Command, s *session, in *inputs, args []string) error {
	if len(args) == 0 {
		args = []string{"all"}
	}
	m, err := s.inventory.Match(args, inventory.MatchOptions{RunID: s.id})
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	limit, err := a.limit(s, in.limit)
	if err != nil {
		return err
	}
	for _, h := range m.Hosts {
		if limit != nil && !contains(limit, h) {
			continue
		}
		a.row("%s\t%s", h, strings.Join(s.inventory.GroupsOf(h), ","))
	}
	for _, u := range m.Unmatched {
		a.warn("Could not match supplied host pattern, ignoring: %s", u.Pattern)
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func (a *app) inventoryGraph(_ *cobra.Command, s *session, _ *inputs, args []string) error {
	name := "all"
	if len(args) > 0 {
		name = args[0]
	}
	if _, ok := s.inventory.Group(name); !ok && name != "all" {
		return &exitError{engine.ExitError, source.Errorf(source.Pos{}, "the inventory has no group %q", name).
			WithHelp("%s", source.DidYouMean(name, s.inventory.Groups()))}
	}
	a.row("@%s:", name)
	a.graph(s.inventory, name, "  ")
	return nil
}

// graph prints the content of a group, child groups first.
func (a *app) graph(inv *inventory.Inventory, name, indent string) {
	g, ok := inv.Group(name)
	if !ok {
		return
	}
	for _, child := range g.Children {
		a.row("%s|--@%s:", indent, child)
		a.graph(inv, child, indent+"|  ")
	}
	if name == inventory.All {
		return // each of its hosts is in another group or in ungrouped
	}
	for _, h := range g.Hosts {
		a.row("%s|--%s", indent, h)
	}
}

func (a *app) inventoryHost(cmd *cobra.Command, s *session, _ *inputs, args []string) error {
	if len(args) != 1 {
		return usage("specify one host: kk inventory host node1 -i inventory.yaml")
	}
	v, err := a.hostView(cmd.Context(), s, args[0], here)
	if err != nil {
		return err
	}
	out := value.NewDict()
	unlisted := map[string]bool{}
	for _, m := range playbook.MagicVariables() {
		unlisted[m.Name] = m.Unlisted
	}
	for _, n := range sorted(v.Held()) {
		if unlisted[n] {
			continue
		}
		val, ok, err := v.Lookup(n)
		if err == nil && ok {
			val, err = value.Force(val)
		}
		if err != nil || !ok || value.IsUndefined(val) {
			continue
		}
		out.Set(n, masked(n, val))
	}
	return a.printValue(out)
}
