package lint

import (
	"strings"
	"sync"

	"kubekey/pkg/expr"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
)

// Watch is told what is linked and compiled on the way to a run. The zero
// value is ready; many goroutines may tell it at once.
type Watch struct {
	mu    sync.Mutex
	tasks []*project.Task
	exprs []*expr.Expr
	bound map[string]bool // names that templates bind
}

// Task is told of a linked task.
func (w *Watch) Task(t *project.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = append(w.tasks, t)
}

// Expr is told of a compiled expression.
func (w *Watch) Expr(x *expr.Expr) {
	if strings.Contains(fileOf(x.Pos()), "filter_plugins/") {
		return // what it sees are its parameters
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exprs = append(w.exprs, x)
}

// Bound is told of a name that a template binds.
func (w *Watch) Bound(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == nil {
		w.bound = map[string]bool{}
	}
	w.bound[name] = true
}

// distinct are the tasks as written: one that several places lead to is there once.
func (w *Watch) distinct() []*project.Task {
	var out []*project.Task
	seen := map[*playbook.Task]bool{}
	for _, t := range w.tasks {
		if t.Syntax != nil && !seen[t.Syntax] {
			seen[t.Syntax] = true
			out = append(out, t)
		}
	}
	return out
}
