package cli

import (
	"slices"

	"kubekey/pkg/config"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// configure checks the user's config for playbooks whose project has a config schema, and makes the merged config
// the highest variable layers of the run. Problems are added to the session. It reports whether there is a schema.
func (a *app) configure(s *session, playbooks []string) bool {
	schemas := a.schemas(playbooks)
	if len(schemas) == 0 {
		return false
	}
	if len(schemas) > 1 {
		s.diagnostics.Add(source.Errorf(source.Pos{}, "the playbooks use different config schemas (%s, %s)", schemas[0],
			schemas[1]).
			WithHelp("run them in separate commands"))
		return true
	}
	schema, ds := config.Load(a.tree, schemas[0])
	s.diagnostics.Add(ds...)
	if ds.Err() != nil {
		return true
	}
	foreign, whole := a.foreignConfigs(schema, s.given)
	if whole {
		s.diagnostics.Add(foreign...)
		return true
	}
	if !s.inventoryFails {
		s.diagnostics.Add(a.foreignInventories(schema, s.inventory.Sources())...)
		for _, name := range schema.Groups() {
			s.inventory.AddGroup(name)
		}
	}
	var parts []config.Part
	if !s.inventoryFails {
		parts, ds = schema.InventoryParts(s.inventory, source.Dir(playbooks[0]))
		s.diagnostics.Add(ds...)
	}
	merged, ds := schema.Apply(s.given, parts...)
	s.diagnostics.Add(ds...)
	s.diagnostics.Add(merged.Check()...)
	s.diagnostics.Add(a.checkRules(s, schema, merged, playbooks)...)
	adviseToConvert(s.diagnostics, foreign)
	a.hideSecrets(merged.Values)
	s.extra = a.configLayers(s, schema, merged)
	s.diagnostics = s.diagnostics.Sort()
	return true
}

// adviseToConvert adds the advice for a key of another tool to the error for that key, unless it has one.
func adviseToConvert(ds, foreign source.Diagnostics) {
	for _, f := range foreign {
		for _, d := range ds {
			if d.Pos == f.Pos && d.Help == "" {
				d.Help = f.Help
			}
		}
	}
}

// configLayers puts the config above all other layers, except for the command line variables that the schema does
// not describe.
func (a *app) configLayers(s *session, schema *config.Schema, merged *config.Config) []*vars.Layer {
	layers := []*vars.Layer{merged.Layer(s.templates)}
	if schema.Bundled() {
		if known := a.versions(s, merged); known != nil {
			layers = append(layers, known)
		}
	}
	return append(layers, a.configReader().Others(s.given, schema, s.templates)...)
}

// configReader returns the reader for the config on the command line.
func (a *app) configReader() config.Reader { return config.Reader{Files: a.tree, Secrets: a.secret} }

// hideSecrets registers values with names of secrets so that they are not shown.
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
