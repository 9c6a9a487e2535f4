package cli

import (
	"slices"

	"kubekey/pkg/config"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// configure checks what people set for playbooks whose project has a schema
// of its config, and makes the merged config the run's highest layers. What
// is wrong is left in the session. It reports whether there is a schema.
func (a *app) configure(s *session, playbooks []string) bool {
	schemas := a.schemas(playbooks)
	if len(schemas) == 0 {
		return false
	}
	if len(schemas) > 1 {
		s.warnings.Add(source.Errorf(source.Pos{}, "the playbooks use different config schemas (%s, %s)", schemas[0], schemas[1]).
			WithHelp("run them in separate commands"))
		return true
	}
	schema, ds := config.Load(a.tree, schemas[0])
	s.warnings.Add(ds...)
	if ds.Err() != nil {
		return true
	}
	if !s.inventoryFails {
		for _, name := range schema.Groups() {
			s.inventory.AddGroup(name)
		}
	}
	var parts []config.Part
	if !s.inventoryFails {
		parts, ds = schema.InventoryParts(s.inventory, source.Dir(playbooks[0]))
		s.warnings.Add(ds...)
	}
	merged, ds := schema.Apply(s.given, parts...)
	s.warnings.Add(ds...)
	s.warnings.Add(merged.Check()...)
	s.warnings.Add(a.checkRules(s, schema, merged, playbooks)...)
	a.hideSecrets(merged.Values)
	s.extra = a.configLayers(s, schema, merged)
	s.warnings = s.warnings.Sort()
	return true
}

// configLayers are the config over everything, but for the variables of the
// command line that the schema does not describe.
func (a *app) configLayers(s *session, schema *config.Schema, merged *config.Config) []*vars.Layer {
	layers := []*vars.Layer{merged.Layer(s.templates)}
	if schema.Bundled() {
		if known := a.versions(s, merged); known != nil {
			layers = append(layers, known)
		}
	}
	return append(layers, a.configReader().Others(s.given, schema, s.templates)...)
}

// configReader reads what the command line sets.
func (a *app) configReader() config.Reader { return config.Reader{Files: a.tree, Secrets: a.secret} }

// hideSecrets keeps values whose names say that they are secret from being shown.
func (a *app) hideSecrets(v any) { a.secret.AddNamed(value.Named("", v, redact.Within)) }

// schemas lists the schemas of the projects that playbooks belong to.
func (a *app) schemas(playbooks []string) []string {
	var out []string
	for _, p := range playbooks {
		if file := config.Find(a.tree, p); file != "" && !slices.Contains(out, file) {
			out = append(out, file)
		}
	}
	return out
}
