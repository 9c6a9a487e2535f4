package inventory

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// APIVersion is the version of the documents that kk reads: those of kind Inventory and Config.
const APIVersion = "kubekey.kubesphere.io/v1"

// OtherVersion reports an unsupported apiVersion; it is nil for the supported one.
func OtherVersion(at source.Pos, version string) *source.Diagnostic {
	if version == APIVersion {
		return nil
	}
	return source.Errorf(at, "apiVersion %q is not supported: kk reads %s", version, APIVersion).
		WithHelp("write apiVersion: %s, and check that the document has its form: "+
			"`kk create config` and `kk create inventory` print one", APIVersion)
}

// OldVersion returns the error for a file of KubeKey v3 or older, whose kind Cluster has both hosts and config. It is
// nil for other files. The file is converted to a config or an inventory.
func OldVersion(f *source.File, docs []*yaml.Node, to string) *source.Diagnostic {
	for _, doc := range docs {
		kind, version := child(source.Resolve(doc), "kind"), child(source.Resolve(doc), "apiVersion")
		if kind != nil && kind.Value == "Cluster" && version != nil &&
			strings.HasPrefix(version.Value, "kubekey.kubesphere.io/") {
			d := source.Errorf(source.NodePos(f, kind), "kind Cluster is a file of KubeKey v3").
				WithHelp("convert it: kk convert %s %s -o NEW", to, f.Name)
			d.Width = len(kind.Value)
			return d
		}
	}
	return nil
}

// kubekey reads `kind: Inventory`.
func (y *yamlFile) kubekey(root *yaml.Node) {
	if kind := child(root, "kind"); kind.Value != "Inventory" {
		y.fail(kind, "kind is %q, but an inventory has kind \"Inventory\"", kind.Value)
		return
	}
	if v := child(root, "apiVersion"); v != nil {
		if d := OtherVersion(y.at(v), v.Value); d != nil {
			y.ds.Add(d)
		}
	}
	for k := range y.pairs(root, "the inventory") {
		y.known(k, "the inventory", "apiVersion", "kind", "metadata", "spec", "status")
	}
	spec := child(root, "spec")
	if isNull(spec) {
		return
	}
	if !y.isMapping(spec, "spec") {
		return
	}
	for k, v := range y.pairs(spec, "spec") {
		if !y.known(k, "spec", "hosts", "vars", "groups") || isNull(source.Resolve(v)) ||
			!y.isMapping(source.Resolve(v), "spec."+k.Value) {
			continue
		}
		switch k.Value {
		case "hosts":
			y.specHosts(source.Resolve(v))
		case "vars":
			y.inv.groups[All].setVars(y.varSet(v))
		}
	}
	// Groups are read last, wherever they are in the file, because they refer to hosts.
	if groups := child(spec, "groups"); !isNull(groups) && groups.Kind == yaml.MappingNode {
		y.specGroups(groups)
	}
}

func (y *yamlFile) known(k *yaml.Node, of string, keys ...string) bool {
	for _, key := range keys {
		if k.Value == key {
			return true
		}
	}
	y.fail(k, "%s has no key %q", of, k.Value).
		WithHelp("%s", orElse(source.DidYouMean(k.Value, keys), fmt.Sprintf("it has %v", keys)))
	return false
}

func (y *yamlFile) isMapping(n *yaml.Node, what string) bool {
	if n.Kind == yaml.MappingNode {
		return true
	}
	y.fail(n, "%s must be a mapping, found %s", what, kindName(n))
	return false
}

func (y *yamlFile) specHosts(n *yaml.Node) {
	for k, v := range y.pairs(n, "spec.hosts") {
		names, port, err := expandHosts(k.Value)
		if err != nil {
			y.fail(k, "%v", err)
			continue
		}
		own := y.varSet(v)
		sets := []*VarSet{y.connection(source.Resolve(v)), own}
		if port > 0 {
			sets = append([]*VarSet{portVar(y.file.Name, port, y.at(k))}, sets...)
		}
		for _, name := range names {
			h := y.inv.hostAt(name, y.path, y.at(k))
			y.inv.groups[All].join(h)
			for _, s := range sets {
				if s != nil {
					h.vars = append(h.vars, s)
				}
			}
		}
	}
}

// connectionVar is the variable for a key of `connector:`.
func connectionVar(key string) string {
	switch key {
	case "type":
		return "ansible_connection"
	case "private_key":
		return "ansible_ssh_private_key_file"
	case "private_key_content":
		return "ansible_ssh_private_key"
	case "host", "port", "user", "password":
		return "ansible_" + key
	}
	return ""
}

// connection translates a host's `connector:` into the connection variables that the rest of kk
// uses. `connector` itself remains a variable, too.
func (y *yamlFile) connection(hostNode *yaml.Node) *VarSet {
	n := child(hostNode, "connector")
	if isNull(n) || !y.isMapping(n, "connector") {
		return nil
	}
	plain, ds := nodeVars(y.file, n, y.ds)
	if plain == nil || len(ds) > 0 {
		return nil // reported with the host's variables
	}
	y.checkConnector(n)
	out := &VarSet{Name: y.file.Name, Values: value.NewDict()}
	for k, v := range plain.Values.All() {
		key, _ := k.(string)
		name := connectionVar(key)
		if name == "" || v == nil || v == "" {
			continue
		}
		out.Values.Set(name, v)
		out.at = append(out.at, keyPos{name, plain.At(key)})
		if key == "password" {
			// The only password in the file is also used for sudo.
			out.Values.Set("ansible_become_password", v)
			out.at = append(out.at, keyPos{"ansible_become_password", plain.At(key)})
		}
	}
	return y.sealed(out)
}

// checkConnector reports values that no connection can use. An unknown key is only a warning,
// because playbooks can use it.
func (y *yamlFile) checkConnector(n *yaml.Node) {
	known := []string{"type", "host", "port", "user", "password", "private_key", "private_key_content"}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], source.Resolve(n.Content[i+1])
		if connectionVar(k.Value) == "" {
			d := source.Warningf(y.at(k), "connector has no key %q", k.Value).WithHelp("%s", source.DidYouMean(k.Value, known))
			d.Width = len(k.Value)
			y.ds.Add(d)
			continue
		}
		if v.Kind == yaml.ScalarNode && (isNull(v) || v.Value == "" || strings.Contains(v.Value, "{{")) {
			continue
		}
		port, err := strconv.Atoi(v.Value)
		switch {
		case v.Kind != yaml.ScalarNode:
			y.fail(v, "%s of connector must be a single value, found %s", k.Value, kindName(v))
		case k.Value == "port" && (err != nil || port < 1 || port > 65535):
			y.fail(v, "%q is not a valid port (1 to 65535)", v.Value)
		case k.Value == "type" && v.Value != "ssh" && v.Value != "local":
			y.fail(v, "connector type %q is not supported", v.Value).WithHelp("use ssh or local")
		}
	}
}

func (y *yamlFile) specGroups(n *yaml.Node) {
	for k := range y.pairs(n, "spec.groups") {
		y.inv.group(k.Value, y.at(k))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], source.Resolve(n.Content[i+1])
		if k.Kind == yaml.ScalarNode && !isNull(v) && y.isMapping(v, "group "+k.Value) {
			y.specGroup(y.inv.group(k.Value, y.at(k)), v)
		}
	}
}

func (y *yamlFile) specGroup(g *group, n *yaml.Node) {
	for k, v := range y.pairs(n, fmt.Sprintf("group %q", g.name)) {
		v = source.Resolve(v)
		switch {
		case !y.known(k, fmt.Sprintf("group %q", g.name), "hosts", "groups", "vars") || isNull(v):
		case k.Value == "vars":
			g.setVars(y.varSet(v))
		case v.Kind != yaml.SequenceNode:
			y.fail(v, "%s of group %q must be a list of names, found %s", k.Value, g.name, kindName(v)).
				WithHelp("write [node1, node2]")
		case k.Value == "hosts":
			y.specMembers(g, v)
		default:
			y.specChildren(g, v)
		}
	}
}

func (y *yamlFile) specMembers(g *group, list *yaml.Node) {
	for _, n := range list.Content {
		names, _, err := expandHosts(source.Resolve(n).Value)
		if err != nil {
			y.fail(n, "%v", err)
			continue
		}
		for _, name := range names {
			h := y.inv.hosts[name]
			switch {
			case h != nil:
			case isLocal(name):
				h = y.inv.host(name, y.path)
				h.vars = append(h.vars, y.inv.local)
				y.inv.groups[All].join(h)
			default:
				y.fail(n, "group %q names host %q, which is not in spec.hosts", g.name, name).
					WithHelp("%s", orElse(y.nearMember(name), "add it to spec.hosts"))
				continue
			}
			g.join(h)
		}
	}
}

// nearMember suggests a host with a similar name, or the group with this name.
func (y *yamlFile) nearMember(name string) string {
	if y.inv.groups[name] != nil {
		return fmt.Sprintf("%q is a group: put it under groups", name)
	}
	return source.DidYouMean(name, hostNames(y.inv.groups[All].hosts))
}

func (y *yamlFile) specChildren(g *group, list *yaml.Node) {
	for _, n := range list.Content {
		n = source.Resolve(n)
		c := y.inv.groups[n.Value]
		if c == nil {
			y.fail(n, "group %q names group %q, which is not in spec.groups", g.name, n.Value).
				WithHelp("%s", orElse(source.DidYouMean(n.Value, groupNames(y.inv.groupOrder)), "add it to spec.groups"))
			continue
		}
		y.addChild(g, c, n)
	}
}
