package config

import (
	"slices"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// Given is the config on the command line: --config, --extra-vars and --set, lowest precedence first.
type Given struct {
	configs []Part
	extra   []Part
	sets    []string
}

// Reader reads the config on the command line.
type Reader struct {
	Files   source.Tree
	Secrets *redact.Set // collects the values with names of secrets
}

// commandLine is the name of the command line in messages.
const commandLine = "the command line"

// Given reads config files, and the texts of --extra-vars and --set.
func (r Reader) Given(configs, extra, sets []string) (Given, source.Diagnostics) {
	var ds source.Diagnostics
	g := Given{sets: sets}
	g.configs = readAll(configs, r.configFile, &ds)
	g.extra = readAll(extra, r.extraArg, &ds)
	return g, ds
}

// Files returns the config files.
func (g Given) Files() []*source.File {
	var out []*source.File
	for _, p := range g.configs {
		if p.File != nil {
			out = append(out, p.File)
		}
	}
	return out
}

func readAll(texts []string, read func(string) (Part, error), ds *source.Diagnostics) []Part {
	var parts []Part
	for _, text := range texts {
		p, err := read(text)
		if err != nil {
			ds.Add(source.DiagnosticsOf(err)...)
			continue
		}
		parts = append(parts, p)
	}
	return parts
}

// Layers returns the variables of the command line when there is no schema.
func (r Reader) Layers(g Given, e *template.Engine) ([]*vars.Layer, source.Diagnostics) {
	return r.layers(g, e, func(string) bool { return false })
}

// layers returns the variables of the command line, except for those to skip.
func (r Reader) layers(g Given, e *template.Engine, leaveOut func(string) bool) ([]*vars.Layer, source.Diagnostics) {
	var ds source.Diagnostics
	merged, extra := Merge(g.configs...), value.NewDict()
	base := without(merged.Values, leaveOut)
	for _, p := range g.extra {
		extra.Merge(without(p.Values, leaveOut))
	}
	all := slices.Concat(g.configs, g.extra)
	for _, text := range g.sets {
		if leaveOut(firstKey(text)) {
			continue
		}
		if err := set(extra, base, text); err != nil {
			ds.Add(badSet(text, err))
			continue
		}
		all = append(all, setPart(text))
	}
	r.hide(base)
	r.hide(extra)
	var layers []*vars.Layer
	if base.Len() > 0 {
		layers = append(layers, vars.Templates("config", base, e, merged.keyAt, merged.Unsafe))
	}
	nowhere := func(string) source.Pos { return source.Pos{} }
	return append(layers, vars.Templates("command line", extra, e, nowhere, Merge(all...).Unsafe)), ds
}

// Others returns the variables of the command line that a schema does not describe.
func (r Reader) Others(g Given, s *Schema, e *template.Engine) []*vars.Layer {
	g.configs = nil // config files are completely part of the config
	layers, _ := r.layers(g, e, s.Has)
	return layers
}

// Apply merges parts over the schema's defaults, and the command line over both.
func (s *Schema) Apply(g Given, parts ...Part) (*Config, source.Diagnostics) {
	parts = append(slices.Clone(parts), g.configs...)
	for _, p := range g.extra {
		p.Values = without(p.Values, func(key string) bool { return !s.Has(key) })
		parts = append(parts, p)
	}
	sets, ds := s.setParts(g.sets, parts)
	return s.Merge(append(parts, sets...)...), ds
}

// Layer returns the config as variables of a run.
func (c *Config) Layer(e *template.Engine) *vars.Layer {
	return vars.Templates("config", c.Values, e, c.keyAt, c.Unsafe)
}

func (c *Config) keyAt(key string) source.Pos { return c.At(key) }

// hide registers values with names of secrets so that they are not shown.
func (r Reader) hide(v any) { r.Secrets.AddNamed(value.Named("", v, redact.Within)) }

// without returns a copy of a dict without the keys to skip.
func without(d *value.Dict, leaveOut func(string) bool) *value.Dict {
	out := value.NewDict()
	for k, v := range d.All() {
		if name, _ := k.(string); !leaveOut(name) {
			out.Set(k, value.Clone(v)) // --set modifies its content
		}
	}
	return out
}
