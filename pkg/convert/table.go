package convert

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// table describes what the keys of another tool become.
type table struct {
	From      string              `yaml:"from"`      // the tool, as it is named in messages
	Documents map[string]document `yaml:"documents"` // by what they are converted to
	Config    map[string]rows     `yaml:"config"`    // by path below spec
	Notes     []string            `yaml:"notes"`     // what else a config means; lines of templates
	Inventory hosts               `yaml:"inventory"`

	file *source.File
}

// document identifies a YAML document.
type document struct {
	Kind     string   `yaml:"kind"`
	Versions []string `yaml:"versions"` // apiVersion
}

// hosts describes the hosts and groups of another tool's inventory.
type hosts struct {
	Hosts  string            `yaml:"hosts"`  // key of the hosts
	Name   string            `yaml:"name"`   // key of a host's name, if the hosts are a list
	Groups string            `yaml:"groups"` // key of the groups
	Names  map[string]string `yaml:"names"`  // names of groups
	Other  string            `yaml:"other"`  // what to do with another group; empty keeps it
	Vars   string            `yaml:"vars"`   // key of the variables of all hosts
	Keep   bool              `yaml:"keep"`   // whether other keys of hosts are kept, as variables
	Keys   map[string]rows   `yaml:"keys"`   // by path below the host
	Skip   []string          `yaml:"skip"`   // other keys of spec, which belong to the config
}

// row describes one key. Expressions see `value`, the value of the key, and `given`, everything that the file sets, by
// path: given['cni.type'].
type row struct {
	To      string             `yaml:"to"`      // key of kk
	Value   yaml.Node          `yaml:"value"`   // its value, with expressions; absent: the value as it is
	Values  map[string]*string `yaml:"values"`  // its value by the value; another one is an error
	Default yaml.Node          `yaml:"default"` // the other tool's default, with expressions
	Note    string             `yaml:"note"`    // comment; lines of a template
	Problem string             `yaml:"problem"` // problems with the value; lines of a template
	None    string             `yaml:"none"`    // why there is no equivalent
	Unless  []string           `yaml:"unless"`  // values that need none
	Do      string             `yaml:"do"`      // what to do about problems and a missing equivalent
	Ignored string             `yaml:"ignored"` // why it has no meaning for kk
}

// rows are what becomes of one key: one row or several.
type rows []row

// UnmarshalYAML reads a row, or a list of rows.
func (r *rows) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]row)(r))
	}
	var one row
	if err := n.Decode(&one); err != nil {
		return err
	}
	*r = rows{one}
	return nil
}

func readTable(tree source.Tree, name string) (*table, error) {
	text, err := tree.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t := &table{file: source.NewFile(name, text)}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return t, nil
}

// isGroup reports whether the table has keys below a path.
func (t *table) isGroup(path string) bool { return isGroup(t.Config, path) }

func isGroup(keys map[string]rows, path string) bool {
	for k := range keys {
		if strings.HasPrefix(k, path+".") {
			return true
		}
	}
	return false
}

// siblings returns the keys that a mapping at a prefix ("" or "a.b.") may have.
func siblings(keys map[string]rows, prefix string) []string {
	found := map[string]bool{}
	for k := range keys {
		if rest, ok := strings.CutPrefix(k, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
