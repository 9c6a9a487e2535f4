package project

import (
	"path"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/expr"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Plugins reads the filters and tests that projects define: the files filter_plugins/*.yaml next to the playbooks,
// and in each role in the directories that the playbooks search for roles. The format of a file is
//
//	filters:
//	  address_of:
//	    description: where a service listens
//	    params: [port, {scheme: https}]    # by position or by name; a mapping gives a default
//	    expr: scheme ~ '://' ~ value ~ ':' ~ port
//	tests:
//	  unprivileged:
//	    expr: value | int >= 1024
func Plugins(tree source.Tree, playbooks, roles []string) ([]expr.Plugin, source.Diagnostics) {
	r := pluginReader{tree: tree}
	seen := map[string]bool{}
	read := func(owner string) {
		dir := source.Join(owner, pluginFolder)
		if !seen[dir] && tree.IsDir(dir) {
			r.folder(dir)
		}
		seen[dir] = true
	}
	for _, p := range playbooks {
		dir := path.Dir(p)
		read(dir)
		for _, role := range rolesInReach(tree, dir, roles) {
			read(role)
		}
	}
	return r.plugins, r.ds
}

// rolesInReach returns the directories of the roles that a playbook in dir can find. Of roles with the same name,
// only the first one in search order is returned.
func rolesInReach(tree source.Tree, dir string, paths []string) []string {
	searched := append([]string{source.Join(dir, "roles"), source.Clean(dir + "/../roles")}, paths...)
	var found []string
	seen := map[string]bool{}
	for _, folder := range append(searched, source.Builtin+"/roles") {
		entries, err := tree.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !seen[e.Name()] {
				seen[e.Name()] = true
				found = append(found, source.Join(folder, e.Name()))
			}
		}
	}
	return found
}

const pluginFolder = "filter_plugins"

type pluginReader struct {
	tree    source.Tree
	plugins []expr.Plugin
	ds      source.Diagnostics
}

func (r *pluginReader) folder(dir string) {
	files, err := r.tree.Glob(source.Join(dir, "*"))
	if err != nil {
		r.ds.Add(source.Errorf(source.Pos{}, "%s: %s", source.Shown(dir), err))
		return
	}
	for _, f := range files {
		switch path.Ext(f) {
		case ".yaml", ".yml":
			r.file(f)
		case ".py":
			r.ds.Add(source.Warningf(source.Pos{}, "%s is not read: kk runs no Python", source.Shown(f)).
				WithHelp("write its filters as expressions, in %s/NAME.yaml", pluginFolder))
		}
	}
}

func (r *pluginReader) file(name string) {
	text, err := r.tree.ReadFile(name)
	if err != nil {
		r.ds.Add(source.Errorf(source.Pos{}, "%s", err))
		return
	}
	f := source.NewFile(source.Shown(name), text)
	docs, ds := source.ParseYAML(f)
	r.ds = append(r.ds, ds...)
	for _, doc := range docs {
		m := source.Mappings{File: f, Problems: &r.ds}
		of := func(what string) func(*yaml.Node) {
			return func(n *yaml.Node) {
				for name, body := range m.Pairs(n, what) {
					r.plugin(m, name, body, what == "tests")
				}
			}
		}
		m.Fields(doc, "the file", map[string]func(*yaml.Node){"filters": of("filters"), "tests": of("tests")})
	}
}

func (r *pluginReader) plugin(m source.Mappings, name, body *yaml.Node, test bool) {
	f := m.File
	p := expr.Plugin{Name: name.Value, Test: test, At: source.NodePos(f, name)}
	if !playbook.IsIdentifier(p.Name) {
		r.ds.Add(source.Errorf(p.At, "'%s' is no name: letters, digits and _, and no digit first", p.Name))
		return
	}
	m.Fields(body, "'"+p.Name+"'", map[string]func(*yaml.Node){
		"expr":        func(val *yaml.Node) { p.Source, p.From = val.Value, source.TextPos(f, val) },
		"params":      func(val *yaml.Node) { p.Params = r.params(f, val) },
		"description": func(*yaml.Node) {},
	})
	if strings.TrimSpace(p.Source) == "" {
		r.ds.Add(source.Errorf(p.At, "'%s' has no expr",
			p.Name).WithHelp("expr: an expression over value and the parameters"))
		return
	}
	r.plugins = append(r.plugins, p)
}

// params reads a list of parameters: names, and mappings of a name to its default.
func (r *pluginReader) params(f *source.File, n *yaml.Node) []expr.Param {
	if n.Kind != yaml.SequenceNode {
		r.ds.Add(source.Errorf(source.NodePos(f, n), "params must be a list").WithHelp("[port, {scheme: https}]"))
		return nil
	}
	var out []expr.Param
	for _, e := range n.Content {
		p, at := expr.Param{Required: true}, source.NodePos(f, e)
		switch {
		case e.Kind == yaml.ScalarNode:
			p.Name = e.Value
		case e.Kind == yaml.MappingNode && len(e.Content) == 2:
			v, err := value.FromYAML(e.Content[1])
			if err != nil {
				r.ds.Add(source.Errorf(at, "%s", err))
				continue
			}
			p = expr.Param{Name: e.Content[0].Value, Default: v}
		}
		switch {
		case !playbook.IsIdentifier(p.Name) || p.Name == "value":
			r.ds.Add(source.Errorf(at, "a parameter is a name other than value, or {name: default}"))
		case p.Required && len(out) > 0 && !out[len(out)-1].Required:
			r.ds.Add(source.Errorf(at, "the parameter '%s' has no default, and stands after one that has", p.Name))
		case hasParam(out, p.Name):
			r.ds.Add(source.Errorf(at, "the parameter '%s' is there twice", p.Name))
		default:
			out = append(out, p)
		}
	}
	return out
}

func hasParam(ps []expr.Param, name string) bool {
	for _, p := range ps {
		if p.Name == name {
			return true
		}
	}
	return false
}
