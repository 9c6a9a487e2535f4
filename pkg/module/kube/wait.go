package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/module"
)

// Waiting is the arguments for waiting.
type Waiting struct {
	Wait        bool          `kk:"wait" default:"no" doc:"wait until the objects are ready: Deployments, DaemonSets and StatefulSets rolled out, Jobs complete, Pods ready, CustomResourceDefinitions established, APIServices available; with state: absent, until they are deleted"`
	Condition   *Condition    `kk:"wait_condition" doc:"wait until each object has this condition instead"`
	WaitTimeout time.Duration `kk:"wait_timeout" default:"120" doc:"how long to wait"`
	WaitSleep   time.Duration `kk:"wait_sleep" default:"1" doc:"interval between checks"`
}

func (w Waiting) state(o object) state {
	if w.Condition != nil {
		return w.Condition.met(o)
	}
	return readiness(o)
}

// until polls look until all returned objects are ready, and returns the last ones. An
// object that cannot become ready ends it.
func (w Waiting) until(ctx context.Context, first []object,
	look func(context.Context) ([]object, error)) ([]object, error) {
	deadline := time.Now().Add(w.WaitTimeout)
	for found := first; ; {
		open, lost := w.open(found)
		switch {
		case len(open) == 0:
			return found, nil
		case lost:
			return found, fmt.Errorf("wait for %s", strings.Join(open, "; "))
		case !time.Now().Before(deadline):
			return found, fmt.Errorf("wait for %s: %s are over", strings.Join(open, "; "), w.WaitTimeout)
		}
		if err := module.Sleep(ctx, max(w.WaitSleep, 100*time.Millisecond)); err != nil {
			return found, err
		}
		var err error
		if found, err = look(ctx); err != nil {
			return found, err
		}
	}
}

// open lists the objects that are not ready, and why. None found is one open.
func (w Waiting) open(found []object) (open []string, lost bool) {
	if len(found) == 0 {
		return []string{"the objects: there is none"}, false
	}
	for _, o := range found {
		if s := w.state(o); !s.ready {
			open = append(open, fmt.Sprintf("%s: %s", o, s.why))
			lost = lost || s.lost
		}
	}
	return open, lost
}

// established waits for the definitions among objects, so that objects of the
// kinds they define can follow.
func (m *K8s) established(ctx context.Context, c *module.Call, objects []object) error {
	w := m.Waiting
	w.Condition = nil
	var names []object
	for _, o := range objects {
		if o.kind() == "CustomResourceDefinition" {
			names = append(names, o.identity())
		}
	}
	if len(names) == 0 || c.Check {
		return nil
	}
	_, err := w.until(ctx, names, func(ctx context.Context) ([]object, error) { return m.live(ctx, c, names) })
	return err
}
