package cli

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/config"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// checkRules evaluates the rules of a schema that apply to one of the playbooks.
func (a *app) checkRules(s *session, schema *config.Schema, merged *config.Config,
	playbooks []string) source.Diagnostics {
	if s.inventoryFails {
		return nil
	}
	scope := ruleScope{merged.Values, inventoryFacts(s, playbooks)}
	var ds source.Diagnostics
	for _, r := range schema.Rules() {
		if len(r.Of) == 0 && s.noInventory {
			continue
		}
		if slices.ContainsFunc(playbooks, func(p string) bool { return r.For(playbookName(p)) }) && merged.Known(r.Of) {
			ds.Add(a.checkRule(s, r, merged, scope)...)
		}
	}
	return ds
}

func playbookName(file string) string { return strings.TrimSuffix(path.Base(file), path.Ext(file)) }

func (a *app) checkRule(s *session, r config.Rule, merged *config.Config, scope ruleScope) source.Diagnostics {
	if r.Check != "" {
		return checkFiles(r, merged, time.Now())
	}
	t, err := s.templates.String(r.Problem, r.At)
	if err != nil {
		return source.DiagnosticsOf(err)
	}
	text, err := t.Text(context.Background(), scope)
	if err != nil {
		return source.DiagnosticsOf(err)
	}
	var ds source.Diagnostics
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(r.Of) == 0 {
			ds.Add(source.Errorf(inventoryPlace(s), "%s", line).WithHelp("%s", r.Help))
			continue
		}
		ds.Add(merged.Problem(strings.Split(r.Of[0], "."), line, r.Help))
	}
	return ds
}

// inventoryPlace returns the position of the first inventory source, or the zero Pos when there is none.
func inventoryPlace(s *session) source.Pos {
	if from := s.inventory.Sources(); len(from) > 0 && !strings.Contains(from[0], ",") {
		return source.Pos{File: source.NewFile(from[0], nil)}
	}
	return source.Pos{}
}

// ruleScope contains the variables of rules: the config and the inventory.
type ruleScope struct{ config, inventory *value.Dict }

// Lookup implements expr.Scope.
func (s ruleScope) Lookup(name string) (any, bool, error) {
	if v, ok := s.inventory.Get(name); ok {
		return v, true, nil
	}
	v, ok := s.config.Get(name)
	return v, ok, nil
}

// inventoryFacts returns the groups with their hosts, and for each host its name, the address it is reached at (""
// for this machine) and its addresses. Templates are skipped because their values are not known yet.
func inventoryFacts(s *session, playbooks []string) *value.Dict {
	groups := value.NewDict()
	for _, name := range s.inventory.Groups() {
		groups.Set(name, value.Of(s.inventory.HostsIn(name)))
	}
	var hosts []any
	for _, name := range s.inventory.Hosts() {
		vars := value.NewDict()
		for _, set := range s.inventory.VarLayers(name, source.Dir(playbooks[0])) {
			for k, v := range set.Values.All() {
				vars.Set(k, v)
			}
		}
		hosts = append(hosts, hostFacts(name, vars))
	}
	return value.NewDict("groups", groups, "hosts", hosts)
}

func hostFacts(name string, vars *value.Dict) *value.Dict {
	known := func(key, missing string) string {
		names := []string{key}
		if row, ok := playbook.ConnectionVariableOf(key); ok {
			names = row.Strongest()
		}
		i := slices.IndexFunc(names, func(name string) bool { return vars.Has(name) })
		v, ok := vars.Get(names[max(i, 0)])
		if !ok || v == nil {
			return missing
		}
		if config.IsTemplate(v) {
			return ""
		}
		return value.Str(v)
	}
	address, port := known("ansible_host", name), known("ansible_port", "22")
	at := address + " port " + port
	if address == "" || port == "" || known("ansible_connection", "ssh") == "local" ||
		known("ansible_ssh_common_args", "") != "" {
		at = ""
	}
	var addresses []any
	for _, a := range []string{address, known("internal_ipv4", ""), known("internal_ipv6", "")} {
		if a != "" {
			addresses = append(addresses, a)
		}
	}
	return value.NewDict("name", name, "at", at, "addresses", addresses)
}
