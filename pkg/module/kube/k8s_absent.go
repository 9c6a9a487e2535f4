package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// live is the state in the cluster of the named objects.
func (m *K8s) live(ctx context.Context, c *module.Call, objects []object) ([]object, error) {
	var names []object
	for _, o := range objects {
		if o.name() != "" {
			names = append(names, o.identity())
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	text, err := lines(names)
	if err != nil {
		return nil, err
	}
	s := m.script("k8s_get")
	s.Stdin, s.Probe = strings.NewReader(text), true
	a, err := run(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if said := a.Get("live_err"); a.Get("live_rc") != "0" && !onlyUnknownKinds(said) {
		return nil, fmt.Errorf("query the cluster: %s", strings.TrimSpace(said))
	}
	return fromJSON(a.Get("live"))
}

// onlyUnknownKinds reports whether kubectl complains only of kinds that
// the cluster does not know: of those it has no objects.
func onlyUnknownKinds(said string) bool {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, "no matches for kind") &&
			!strings.HasPrefix(line, "ensure CRDs are installed") &&
			!strings.HasPrefix(line, "Warning: ") && line != "]" {
			return false
		}
	}
	return true
}

func (m *K8s) absent(ctx context.Context, c *module.Call, objects []object) (module.Result, error) {
	desired, err := requirements(m.Labels)
	if err != nil {
		return module.Result{}, err
	}
	var gone []outcome
	live, err := m.live(ctx, c, objects)
	if err == nil {
		live = slices.DeleteFunc(live, func(o object) bool { return !meant(o, desired) })
		gone, err = m.departures(ctx, c, objects, live)
	}
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return module.Result{Warnings: []string{err.Error()}, Data: value.NewDict("result", value.NewDict())}, nil
	}
	if err != nil {
		return module.Result{}, err
	}
	start := time.Now()
	if !c.Check {
		err = m.remove(ctx, c, gone)
	}
	r := m.report(c, gone, len(objects) == 1)
	if len(objects) == 1 && objects[0].name() == "" && len(m.Labels) > 0 {
		m.listed(r.Data, gone)
	}
	if m.Wait && !c.Check {
		r.Data.Set("duration", int(time.Since(start).Seconds()))
	}
	if err != nil {
		return fail(r, err)
	}
	return r, nil
}

// listed makes the result of a task that selects by labels alone: a list.
func (m *K8s) listed(data *value.Dict, gone []outcome) {
	data.Set("method", "delete")
	if len(gone) == 0 {
		data.Set("result", value.NewDict())
		return
	}
	list := []any{}
	for _, o := range gone {
		list = append(list, m.shown(o.object))
	}
	data.Set("result", list)
}

// departures is the outcome for each object, given the existing ones. An
// object without a name stands for all of its kind with the labels.
func (m *K8s) departures(ctx context.Context, c *module.Call, objects, live []object) ([]outcome, error) {
	var all []outcome
	for _, o := range objects {
		if o.name() == "" && !o.generated() {
			query := Info{Access: m.Access, Kind: o.kind(), APIVersion: o.text("apiVersion"), Namespace: o.namespace(),
				Labels: m.Labels}
			found, _, err := query.find(ctx, c)
			if err != nil {
				return nil, err
			}
			for i, o := range found {
				all = append(all, outcome{object: o, before: &found[i], changed: true, method: "delete"})
			}
			continue
		}
		one := outcome{object: object{value.NewDict()}, method: "delete"}
		if i := slices.IndexFunc(live, o.names); i >= 0 {
			one.object, one.before, one.changed = live[i], &live[i], true
		}
		all = append(all, one)
	}
	return all, nil
}

// remove deletes what is there, the last first.
func (m *K8s) remove(ctx context.Context, c *module.Call, gone []outcome) error {
	var live, names []object
	for _, o := range gone {
		if o.changed {
			live = append(live, o.object)
		}
	}
	if len(live) == 0 {
		return nil
	}
	for _, stage := range stages(live) {
		for _, o := range stage {
			names = append(names, o.identity())
		}
	}
	slices.Reverse(names)
	text, err := lines(names)
	if err != nil {
		return err
	}
	seconds := strconv.Itoa(int(m.WaitTimeout.Seconds())) + "s"
	s := m.script("k8s_delete").Set("wait", strconv.FormatBool(m.Wait)).Set("timeout", seconds).Flag("singly", m.Continue)
	if m.Delete != nil {
		s.Set("cascade", strings.ToLower(m.Delete.Propagation)).Number("grace", m.Delete.Grace)
	}
	s.Stdin = strings.NewReader(text)
	a, err := run(ctx, c, s)
	if err != nil {
		return err
	}
	if !m.Continue {
		if a.Get("rc") != "0" {
			return fmt.Errorf("delete: %s", strings.TrimSpace(a.Get("err")))
		}
		return nil
	}
	if err := a.Together("rc", "err"); err != nil {
		return err
	}
	if len(a["rc"]) != len(names) {
		return fmt.Errorf("kubectl answers for %d of %d objects", len(a["rc"]), len(names))
	}
	for i, name := range names {
		if a["rc"][i] == "0" {
			continue
		}
		at := slices.IndexFunc(gone, func(o outcome) bool { return o.changed && name.names(o.object) })
		if at < 0 { // it exists twice
			continue
		}
		gone[at].err, gone[at].changed = fmt.Errorf("delete %s: %s", name, strings.TrimSpace(a["err"][i])), false
	}
	return nil
}
