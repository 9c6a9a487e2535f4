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

// live is what the cluster has of objects.
func (m *K8s) live(ctx context.Context, c *module.Call, objects []object) ([]object, error) {
	text, err := lines(objects)
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
		return nil, fmt.Errorf("look at the cluster: %s", strings.TrimSpace(said))
	}
	return fromJSON(a.Get("live"))
}

// onlyUnknownKinds tells whether all that kubectl complains of is kinds that
// the cluster does not know: of those it has no objects.
func onlyUnknownKinds(said string) bool {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, "no matches for kind") && !strings.HasPrefix(line, "ensure CRDs are installed") &&
			!strings.HasPrefix(line, "Warning: ") && line != "]" {
			return false
		}
	}
	return true
}

func (m *K8s) absent(ctx context.Context, c *module.Call, objects []object) (module.Result, error) {
	var names []object
	for _, o := range objects {
		names = append(names, o.identity())
	}
	live, err := m.live(ctx, c, names)
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return module.Result{Warnings: []string{err.Error()}, Data: value.NewDict("result", value.NewDict())}, nil
	}
	if err != nil {
		return module.Result{}, err
	}
	var gone []outcome
	for i, o := range live {
		gone = append(gone, outcome{object: o, before: &live[i], changed: true, method: "delete"})
	}
	r := result(gone, len(objects) == 1)
	if c.Diff {
		r.Diff = diffs(gone)
	}
	if c.Check || len(live) == 0 {
		return r, nil
	}
	return m.remove(ctx, c, live, r)
}

// remove deletes what is there, the last first.
func (m *K8s) remove(ctx context.Context, c *module.Call, live []object, r module.Result) (module.Result, error) {
	var names []object
	for _, stage := range stages(live) {
		for _, o := range stage {
			names = append(names, o.identity())
		}
	}
	slices.Reverse(names)
	text, err := lines(names)
	if err != nil {
		return module.Result{}, err
	}
	seconds := strconv.Itoa(int(m.WaitTimeout.Seconds())) + "s"
	s := m.script("k8s_delete").Set("wait", strconv.FormatBool(m.Wait)).Set("timeout", seconds)
	s.Stdin = strings.NewReader(text)
	start := time.Now()
	a, err := run(ctx, c, s)
	if err != nil {
		return module.Result{}, err
	}
	r.Data.Set("duration", int(time.Since(start).Seconds()))
	if a.Get("rc") != "0" {
		return fail(r, fmt.Errorf("delete: %s", strings.TrimSpace(a.Get("err"))))
	}
	return r, nil
}
