package kube

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

func (m *K8s) present(ctx context.Context, c *module.Call, objects []object) (module.Result, error) {
	var all []outcome
	var warnings []string
	var failed error
	for _, stage := range stages(objects) {
		done, warned, err := m.apply(ctx, c, stage)
		all, warnings, failed = append(all, done...), append(warnings, warned...), errors.Join(failed, err)
		if failed == nil {
			failed = m.established(ctx, c, stage)
		}
		if failed != nil {
			break
		}
	}
	r := result(all, len(objects) == 1)
	r.Warnings = warnings
	if c.Diff {
		r.Diff = diffs(all)
	}
	if failed != nil {
		return fail(r, failed)
	}
	if m.Wait && !c.Check {
		return m.wait(ctx, c, r, all)
	}
	return r, nil
}

// stages is the order of application: namespaces and definitions of kinds
// first, in a stage of their own if objects of these kinds may follow.
func stages(objects []object) [][]object {
	var first, rest []object
	defines := false
	for _, kind := range []string{"Namespace", "CustomResourceDefinition"} {
		for _, o := range objects {
			if o.kind() == kind {
				first = append(first, o)
				defines = defines || kind == "CustomResourceDefinition"
			}
		}
	}
	for _, o := range objects {
		if o.kind() != "Namespace" && o.kind() != "CustomResourceDefinition" {
			rest = append(rest, o)
		}
	}
	if !defines || len(rest) == 0 {
		return [][]object{append(first, rest...)}
	}
	return [][]object{first, rest}
}

// apply applies objects in one round trip.
func (m *K8s) apply(ctx context.Context, c *module.Call, objects []object) ([]outcome, []string, error) {
	text, err := lines(objects)
	if err != nil {
		return nil, nil, err
	}
	s := m.script("k8s_apply").Set("manager", m.FieldManager).Flag("force", m.ForceConflicts)
	s.Stdin = strings.NewReader(text)
	a, err := run(ctx, c, s)
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return created(objects), []string{err.Error()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	live, err := fromJSON(a.Get("live"))
	if err != nil {
		return nil, nil, err
	}
	var done []outcome
	if whole, ok := a["all"]; ok {
		applied, err := fromJSON(whole[0])
		if err != nil {
			return nil, nil, err
		}
		if len(applied) != len(objects) {
			return nil, nil, fmt.Errorf("kubectl answers with %d objects for %d", len(applied), len(objects))
		}
		for _, o := range applied {
			done = append(done, judge(c, o, live))
		}
		return done, warnings(a["warn"]), nil
	}
	return m.singly(c, objects, live, a)
}

// singly reads the answers to objects that were sent one by one.
func (m *K8s) singly(c *module.Call, objects, live []object, a hostscript.Answer) ([]outcome, []string, error) {
	var done []outcome
	one, refused := a["one"], a["refused"]
	if len(one)+len(refused) != len(objects) {
		return nil, nil, fmt.Errorf("kubectl answers for %d of %d objects", len(one)+len(refused), len(objects))
	}
	for _, text := range one {
		applied, err := fromJSON(text)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range applied {
			done = append(done, judge(c, o, live))
		}
	}
	// The order is kept within each kind of answer: what is not among the
	// applied objects was refused, in turn.
	var failed []error
	for i, o := range without(objects, done) {
		if i >= len(refused) {
			break
		}
		if c.Check && notYet(refused[i]) {
			done = append(done, created([]object{o})...)
			continue
		}
		failed = append(failed, fmt.Errorf("%s: %s", o, reason(o, refused[i])))
	}
	return done, warnings(a["warn"]), errors.Join(failed...)
}

// without are the objects that are not among the done.
func without(objects []object, done []outcome) []object {
	is := map[string]bool{}
	for _, d := range done {
		is[d.object.key()] = true
		bare := d.object.identity()
		if meta, ok := bare.at("metadata").(*value.Dict); ok {
			meta.Delete("namespace")
		}
		is[bare.key()] = true // the task may leave the namespace to kubectl
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return is[o.key()] })
}

// notYet tells errors apart that a task before will have mended.
func notYet(said string) bool {
	return strings.Contains(said, "no matches for kind") || absentNamespace.MatchString(said)
}

var absentNamespace = regexp.MustCompile(`namespaces "[^"]*" not found`)

func created(objects []object) []outcome {
	var all []outcome
	for _, o := range objects {
		all = append(all, outcome{object: o, changed: true, method: "create"})
	}
	return all
}

func judge(c *module.Call, o object, live []object) outcome {
	for i, l := range live {
		if l.key() != o.key() {
			continue
		}
		same := !c.Check && l.text("metadata", "resourceVersion") == o.text("metadata", "resourceVersion")
		changed := !same && !value.Equal(settled(l), settled(o))
		return outcome{object: o, before: &live[i], changed: changed, method: "apply"}
	}
	return outcome{object: o, changed: true, method: "create"}
}

// reason is what kubectl says of an object that was refused, less its advice
// on conflicts, and without what a Secret holds.
func reason(o object, said string) string {
	said, _, conflict := strings.Cut(strings.TrimSpace(said), "\nPlease review the fields above")
	said = strings.TrimPrefix(said, "error: ")
	if conflict {
		said += "\nset force_conflicts to take these fields over, or leave them out"
	}
	if o.kind() != "Secret" {
		return said
	}
	said, _, _ = strings.Cut(said, ", error found in")
	for _, part := range []string{"data", "stringData"} {
		data, _ := o.at(part).(*value.Dict)
		for _, v := range data.All() {
			if text := value.Str(v); len(text) > 3 {
				said = strings.ReplaceAll(said, text, hidden)
			}
		}
	}
	return said
}

func warnings(texts []string) []string {
	var all []string
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
				all = append(all, rest)
			}
		}
	}
	return all
}

func (m *K8s) wait(ctx context.Context, c *module.Call, r module.Result, all []outcome) (module.Result, error) {
	var first, names []object
	for _, o := range all {
		first, names = append(first, o.object), append(names, o.object.identity())
	}
	start := time.Now()
	found, err := m.until(ctx, first, func(ctx context.Context) ([]object, error) { return m.live(ctx, c, names) })
	for i := range all {
		for _, o := range found {
			if o.key() == all[i].object.key() {
				all[i].object = o
			}
		}
	}
	data := result(all, len(all) == 1).Data
	data.Set("duration", int(time.Since(start).Seconds()))
	r.Data = data
	if err != nil {
		return fail(r, err)
	}
	return r, nil
}
