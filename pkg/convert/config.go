package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/config"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// config converts the config in a file.
func (j *job) config() (string, source.Diagnostics) {
	j.walk(j.table.Config, j.spec, "")
	j.defaults()
	j.check()
	head := j.head()
	if j.ds.Err() != nil {
		return "", j.ds.Sort()
	}
	text, err := encode(head, j.out)
	if err != nil {
		return "", source.DiagnosticsOf(err)
	}
	return text, nil
}

// check sorts the keys of the result, and validates it with the schema.
func (j *job) check() {
	j.order(j.out)
	v, err := value.FromYAMLFile(j.out, j.file.Name)
	if err != nil {
		j.ds.Add(source.DiagnosticsOf(err)...)
		return
	}
	values, _ := v.(*value.Dict)
	part := config.Part{Name: j.file.Name, Values: values, File: j.file, Node: j.out}
	j.ds.Add(j.schema.Merge(part).Check()...)
}

// walk applies the rows to the keys of a mapping.
func (j *job) walk(keys map[string]rows, n *yaml.Node, prefix string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		path := prefix + k.Value
		group := isGroup(keys, path)
		rows, described := keys[path]
		switch {
		case group && v.Kind == yaml.MappingNode:
			own, others := v, mapping()
			if described {
				own, others = split(keys, v, path+".")
			}
			j.walk(keys, own, path+".")
			if len(others.Content) > 0 {
				j.apply(rows, k, others, path)
			}
		case described:
			j.apply(rows, k, v, path)
		case group && !isNull(v):
			j.fail(v, "", "%s must be a mapping", path)
		case !group:
			j.unknown(keys, k, prefix)
		}
	}
}

// split separates the keys of a mapping that have rows of their own from the others, which are a value of the mapping.
func split(keys map[string]rows, n *yaml.Node, prefix string) (own, others *yaml.Node) {
	own, others = mapping(), mapping()
	place(others, n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		path, to := prefix+n.Content[i].Value, others
		if _, described := keys[path]; described || isGroup(keys, path) {
			to = own
		}
		to.Content = append(to.Content, n.Content[i], n.Content[i+1])
	}
	return own, others
}

func (j *job) unknown(keys map[string]rows, k *yaml.Node, prefix string) {
	in, known := j.table.From, siblings(keys, prefix)
	if prefix != "" {
		in = strings.TrimSuffix(prefix, ".") + " of " + in
	}
	help := source.DidYouMean(k.Value, known)
	if help == "" && len(known) <= 12 {
		help = "it has " + strings.Join(known, ", ")
	}
	if help == "" {
		help = "delete the key"
	}
	j.fail(k, help, "%s has no key %q", in, k.Value)
}

// apply applies the rows of a key to its value.
func (j *job) apply(rs rows, k, v *yaml.Node, path string) {
	before := len(j.ds)
	for _, r := range rs {
		n, comment := j.applied(r, k, v, path)
		if len(j.ds) > before {
			return
		}
		if n != nil {
			set(j.out, strings.Split(r.To, "."), n, comment)
		}
	}
}

// applied returns what a value becomes, or nil for nothing.
func (j *job) applied(r row, k, v *yaml.Node, path string) (*yaml.Node, []string) {
	switch {
	case r.Ignored != "":
		j.ignore(r.Ignored, path)
		return nil, nil
	case isNull(v) || isEmpty(v) && len(r.Values) == 0:
		return nil, nil
	case v.Kind == yaml.ScalarNode && slices.Contains(r.Unless, v.Value):
		return nil, nil
	case r.None != "":
		j.fail(k, r.Do, "%s has no equivalent in kk: %s", path, r.None)
		return nil, nil
	}
	if t := goTemplate(v); t != nil {
		j.fail(t, "write the value itself: kk's templates are Jinja's, and have other variables",
			"%s contains a template of %s", path, j.table.From)
		return nil, nil
	}
	problems, err := j.evaluateText(r.Problem, v)
	if err != nil {
		problems = []string{"unexpected value"}
	}
	for _, p := range problems {
		j.fail(v, r.Do, "%s: %s", path, p)
	}
	if len(problems) > 0 {
		return nil, nil
	}
	n := j.becomes(r, v, path)
	if n == nil {
		return nil, nil
	}
	comment, err := j.evaluateText(r.Note, v)
	if err != nil {
		comment = []string{r.Note}
	}
	return n, comment
}

// becomes returns the value of kk's key, or nil if it is not set.
func (j *job) becomes(r row, v *yaml.Node, path string) *yaml.Node {
	if len(r.Values) > 0 {
		to, known := r.Values[v.Value]
		if v.Kind != yaml.ScalarNode || !known {
			choices := slices.Sorted(maps.Keys(r.Values))
			choices = slices.DeleteFunc(choices, func(c string) bool { return c == "" })
			help := orElse(source.DidYouMean(v.Value, choices), r.Do)
			j.fail(v, help, "%s: %q is not one of %s", path, v.Value, strings.Join(choices, ", "))
			return nil
		}
		if to == nil {
			return nil
		}
		n := scalar(*to)
		place(n, v)
		return n
	}
	if r.Value.IsZero() {
		return v
	}
	n, err := j.evaluate(&r.Value, v)
	if err != nil {
		j.fail(v, orElse(r.Do, "compare it with the documentation of "+j.table.From), "%s has an unexpected form", path)
		return nil
	}
	return n
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

func (j *job) ignore(why, path string) {
	list, _ := j.ignored.Get(why)
	paths, _ := list.(string)
	j.ignored.Set(why, strings.TrimPrefix(paths+", "+path, ", "))
}

// goTemplate returns the first node with a template in it.
func goTemplate(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "{{") {
		return n
	}
	for _, e := range n.Content {
		if t := goTemplate(e); t != nil {
			return t
		}
	}
	return nil
}

// defaults sets what the file does not set to the other tool's default, where kk's differs.
func (j *job) defaults() {
	own := j.schema.Merge()
	for _, path := range slices.Sorted(maps.Keys(j.table.Config)) {
		for _, r := range j.table.Config[path] {
			if r.Default.IsZero() {
				continue
			}
			to := strings.Split(r.To, ".")
			if found(j.out, to) {
				continue
			}
			n, err := j.evaluate(&r.Default, nil)
			if err != nil {
				j.ds.Add(source.Errorf(source.NodePos(j.table.file, &r.Default), "the default of %s: %v", path, err))
				continue
			}
			if n == nil {
				continue
			}
			kk, _ := own.Get(to...)
			old, err := nodeOf(kk, nil)
			if err != nil || old != nil && inline(old) == inline(n) {
				continue
			}
			comment, err := j.evaluateText(r.Note, n)
			if err != nil {
				comment = nil
			}
			set(j.out, to, n, comment)
			j.notes = append(j.notes, defaulted{r.To, inline(n), inline(old)})
		}
	}
}

// found reports whether a path is set.
func found(n *yaml.Node, path []string) bool {
	for _, step := range path {
		if n = child(n, step); n == nil {
			return false
		}
	}
	return true
}

// inline formats a value on one line.
func inline(n *yaml.Node) string {
	if n == nil {
		return "not set"
	}
	flow := *n
	flow.Style |= yaml.FlowStyle
	b, err := yaml.Marshal(&flow)
	if err != nil {
		return n.Value
	}
	return strings.TrimSpace(string(b))
}

// order sorts the keys as the schema does.
func (j *job) order(n *yaml.Node, path ...string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	known := j.schema.Keys(path...)
	if len(known) == 0 {
		return
	}
	type pair struct{ k, v *yaml.Node }
	var pairs []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		pairs = append(pairs, pair{n.Content[i], n.Content[i+1]})
		j.order(n.Content[i+1], append(slices.Clone(path), n.Content[i].Value)...)
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return slices.Index(known, a.k.Value) - slices.Index(known, b.k.Value)
	})
	n.Content = n.Content[:0]
	for _, p := range pairs {
		n.Content = append(n.Content, p.k, p.v)
	}
}

// head returns the comment at the top of a config.
func (j *job) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Converted from a file of %s. Comments are where a key has another meaning.\n", j.table.From)
	if len(j.notes) > 0 {
		fmt.Fprintf(&b, "#\n# The file does not set these, and the default of %s differs from that of kk. Below, they have\n"+
			"# the value of %s:\n", j.table.From, j.table.From)
		for _, d := range j.notes {
			fmt.Fprintf(&b, "#   %s: %s (kk: %s)\n", d.path, d.value, d.own)
		}
	}
	for _, template := range j.table.Notes {
		lines, err := j.evaluateText(template, nil)
		if err != nil {
			j.ds.Add(source.Errorf(source.Pos{File: j.table.file}, "a note: %v", err))
		}
		for _, line := range lines {
			b.WriteString("#\n# " + strings.Join(wrap(line), "\n# ") + "\n")
		}
	}
	if j.ignored.Len() > 0 {
		b.WriteString("#\n# These keys have no meaning for kk:\n")
		for why, paths := range j.ignored.All() {
			for i, line := range wrap(value.Str(paths) + ": " + value.Str(why)) {
				b.WriteString("#   " + strings.Repeat("  ", min(i, 1)) + line + "\n")
			}
		}
	}
	return b.String() + "\n"
}
