package inventory

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// script runs an executable source with --list, and reads its output.
func (l *loader) script(path string, f *source.File) {
	out, ok := l.output(path, f.Name, "--list")
	if !ok {
		return
	}
	answer := source.NewFile(f.Name+" --list", out)
	root, ds := parseYAML(answer)
	for _, d := range ds {
		d.Summary = "the output of the executable is not JSON: " + d.Summary
		l.ds.Add(d)
	}
	if ds.Err() != nil {
		return
	}
	y := &yamlFile{loader: l, file: answer, path: path}
	if root == nil || root.Kind != yaml.MappingNode {
		l.ds.Add(source.Errorf(source.Pos{File: answer, Line: 1, Col: 1},
			"the executable must print a JSON object of groups"))
		return
	}
	before := len(l.inv.hosts)
	y.listing(root)
	if child(root, "_meta") == nil && len(l.inv.hosts) > before {
		y.askEach(root)
	}
}

func (l *loader) output(path, name string, args ...string) ([]byte, bool) {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = l.o.Dir, l.o.Env
	limit := l.o.Tree.Patience
	if limit == 0 {
		limit = source.Patience
	}
	out, err := source.Program{Cmd: cmd, Max: source.MaxFile, Limit: limit}.Output(l.ctx)
	if err == nil {
		return out, true
	}
	file := source.NewFile(name, nil)
	d := source.Errorf(source.Pos{File: file}, "run inventory executable with %s: %v", strings.Join(args, " "), err)
	var bad *source.ProgramError
	if errors.As(err, &bad) && bad.Stderr != "" {
		d.Help = "it printed: " + bad.Stderr[:min(len(bad.Stderr), 2000)]
	}
	l.ds.Add(d)
	return nil, false
}

// listing reads the JSON of --list: groups, and _meta.hostvars.
func (y *yamlFile) listing(root *yaml.Node) {
	for k, v := range y.pairs(root, "the listing") {
		if k.Value != "_meta" {
			y.listed(k, source.Resolve(v))
		}
	}
	hostvars := child(child(root, "_meta"), "hostvars")
	if isNull(hostvars) || !y.isMapping(hostvars, "_meta.hostvars") {
		return
	}
	for k, v := range y.pairs(hostvars, "_meta.hostvars") {
		y.giveVars(k.Value, y.varSet(v))
	}
}

func (y *yamlFile) giveVars(name string, set *VarSet) {
	h := y.inv.host(name, y.path)
	y.inv.groups[All].join(h)
	if set != nil {
		h.vars = append(h.vars, set)
	}
}

// listed reads one group: a list of hosts, or hosts, children and vars.
func (y *yamlFile) listed(key, n *yaml.Node) {
	g := y.inv.group(key.Value, y.at(key))
	switch n.Kind {
	case yaml.SequenceNode:
		y.listedHosts(g, n)
	case yaml.MappingNode:
		if c := child(n, "hosts"); !isNull(c) {
			y.listedHosts(g, c)
		}
		if c := child(n, "vars"); !isNull(c) {
			g.setVars(y.varSet(c))
		}
		if c := child(n, "children"); !isNull(c) {
			for _, e := range c.Content {
				y.addChild(g, y.inv.group(e.Value, y.at(e)), e)
			}
		}
	default:
		y.fail(n, "group %q must be a list of hosts, or an object with hosts, children and vars", key.Value)
	}
}

func (y *yamlFile) listedHosts(g *group, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		y.fail(n, "hosts of group %q must be a list, found %s", g.name, kindName(n))
		return
	}
	for _, e := range n.Content {
		h := y.inv.host(e.Value, y.path)
		y.inv.groups[All].join(h)
		g.join(h)
	}
}

// askEach runs the executable once for each host, if its listing has no _meta.
func (y *yamlFile) askEach(root *yaml.Node) {
	for _, name := range hostNames(y.inv.groups[All].hosts) {
		if y.inv.hosts[name].file != y.path {
			continue
		}
		out, ok := y.output(y.path, y.file.Name, "--host", name)
		if !ok {
			return // the next call would fail in the same way
		}
		if len(bytes.TrimSpace(out)) == 0 {
			continue
		}
		v, err := value.FromJSON(out)
		vars, isDict := v.(*value.Dict)
		if err != nil || !isDict {
			y.ds.Add(source.Errorf(source.Pos{}, "%s --host %s must print a JSON object", y.path, name))
			return
		}
		y.giveVars(name, y.sealed(NewVarSet(source.ShownFrom(y.o.Dir, y.path)+" --host", vars)))
	}
}
