package lint

import (
	"strings"
	"sync"

	"kubekey/pkg/expr"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
)

// Watch records what is linked and compiled. The zero value is ready to use; it is safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	tasks []*project.Task
	exprs []*expr.Expr
	bound map[string]bool // names that templates bind
}

// Task records a linked task.
func (w *Watch) Task(t *project.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = append(w.tasks, t)
}

// Expr records a compiled expression.
func (w *Watch) Expr(x *expr.Expr) {
	if strings.Contains(fileOf(x.Pos()), "filter_plugins/") {
		return // what it sees are its parameters
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exprs = append(w.exprs, x)
}

// Bound records a name that a template binds.
func (w *Watch) Bound(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == nil {
		w.bound = map[string]bool{}
	}
	w.bound[name] = true
}

// distinct returns the tasks as written: a task that is included several times is listed once.
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
