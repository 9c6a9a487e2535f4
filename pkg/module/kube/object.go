package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/value"
)

// object is a Kubernetes object as JSON has it.
type object struct{ *value.Dict }

// at walks down dictionaries; nil when a step is missing.
func (o object) at(path ...string) any {
	var v any = o.Dict
	for _, key := range path {
		d, ok := v.(*value.Dict)
		if !ok {
			return nil
		}
		v, _ = d.Get(key)
	}
	return v
}

func (o object) text(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

func (o object) number(path ...string) int {
	n, _ := o.at(path...).(int)
	return n
}

func (o object) kind() string      { return o.text("kind") }
func (o object) name() string      { return o.text("metadata", "name") }
func (o object) namespace() string { return o.text("metadata", "namespace") }

// generated reports whether the cluster generates the name.
func (o object) generated() bool {
	return o.name() == "" && o.text("metadata", "generateName") != ""
}

// key identifies an object; another API version is the same object.
func (o object) key() string {
	group, _, grouped := strings.Cut(o.text("apiVersion"), "/")
	if !grouped {
		group = ""
	}
	return strings.Join([]string{group, o.kind(), o.namespace(), o.name()}, "/")
}

// names reports whether a task means this object of the cluster: it may leave the
// namespace to kubectl, and may give one to what is in none.
func (o object) names(live object) bool {
	if o.namespace() == "" || live.namespace() == "" {
		o, live = o.anywhere(), live.anywhere()
	}
	return o.key() == live.key()
}

// anywhere is the object's identity without its namespace.
func (o object) anywhere() object {
	return object{value.NewDict("apiVersion", o.text("apiVersion"), "kind", o.kind(), "metadata",
		value.NewDict("name", o.name()))}
}

// String names the object for people: Deployment default/web.
func (o object) String() string {
	name := o.name()
	if o.generated() {
		name = o.text("metadata", "generateName") + "*"
	}
	if ns := o.namespace(); ns != "" {
		return o.kind() + " " + ns + "/" + name
	}
	return o.kind() + " " + name
}

// identity is the object without its content.
func (o object) identity() object {
	bare := o.anywhere()
	if ns := o.namespace(); ns != "" {
		bare.setMeta("namespace", ns)
	}
	return bare
}

func (o object) check() error {
	switch {
	case o.text("apiVersion") == "" || o.kind() == "":
		return fmt.Errorf("an object needs apiVersion and kind: %.80s", value.Repr(shown(o)))
	case o.name() == "" && !o.generated():
		return fmt.Errorf("%s needs metadata.name", o.kind())
	}
	return nil
}

// hidden replaces the content of a Secret.
const hidden = "********"

// shown is the object as people may see it: the data of Secrets hidden, and
// without the bookkeeping of field managers.
func shown(o object) *value.Dict {
	d := o.Dict.Clone()
	if meta, ok := (object{d}).at("metadata").(*value.Dict); ok {
		meta.Delete("managedFields")
		if notes, ok := (object{d}).at("metadata", "annotations").(*value.Dict); ok && o.kind() == "Secret" {
			notes.Delete("kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	if o.kind() != "Secret" {
		return d
	}
	for _, part := range []string{"data", "stringData"} {
		if data, ok := (object{d}).at(part).(*value.Dict); ok {
			for _, k := range data.Keys() {
				data.Set(k, hidden)
			}
		}
	}
	return d
}

// desired is the object as a difference shows it: what people set, not what
// the cluster says of it.
func desired(o object) *value.Dict {
	d := shown(o)
	d.Delete("status")
	if meta, ok := (object{d}).at("metadata").(*value.Dict); ok {
		for _, key := range []string{"resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
			meta.Delete(key)
		}
	}
	return d
}

// normalized is the object without fields that the cluster sets. The API server may
// rewrite an object only to record field owners: that is not a change.
func normalized(o object) *value.Dict {
	d := o.Dict.Clone()
	d.Delete("status")
	if meta, ok := (object{d}).at("metadata").(*value.Dict); ok {
		for _, key := range []string{"managedFields", "resourceVersion", "generation"} {
			meta.Delete(key)
		}
	}
	return d
}

// lines is the objects as JSON, one a line.
func lines(objects []object) (string, error) {
	var b strings.Builder
	for _, o := range objects {
		text, err := value.JSON(o.Dict, value.JSONOptions{Compact: true})
		if err != nil {
			return "", fmt.Errorf("%s: %w", o, err)
		}
		b.WriteString(text + "\n")
	}
	return b.String(), nil
}

// fromJSON reads what kubectl prints with -o json: nothing, an object, or a list.
func fromJSON(text string) ([]object, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	v, err := value.FromJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("read what kubectl prints: %w", err)
	}
	return flatten(v)
}

// flatten splits an object, a List of objects, or lists of these.
func flatten(v any) ([]object, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return flattenAll(v)
	case *value.Dict:
		o := object{v}
		if items, ok := o.at("items").([]any); ok && strings.HasSuffix(o.kind(), "List") {
			return flattenAll(items)
		}
		return []object{o}, nil
	}
	return nil, fmt.Errorf("an object is a dictionary, not %s", value.TypeName(v))
}

func flattenAll(list []any) ([]object, error) {
	var all []object
	for _, v := range list {
		more, err := flatten(v)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// fromYAML reads the objects of all documents of a text.
func fromYAML(text string) ([]object, error) {
	var all []object
	for dec := yaml.NewDecoder(bytes.NewReader([]byte(text))); ; {
		v, err := value.DecodeYAML(dec)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		more, err := flatten(v)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
}
