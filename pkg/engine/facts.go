package engine

import (
	"slices"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/source"
	"kubekey/pkg/vars"
)

// knows reports whether a play can skip gathering the facts of a host.
func (e *Engine) knows(h *vars.Host) bool {
	return e.Plays.Gathering == Smart && h.Gathered()
}

// recallAll loads the stored facts of the inventory's hosts at the start of a run.
func (e *Engine) recallAll() {
	for _, name := range e.Inventory.Hosts() {
		if e.FlushFacts && e.isSelected(name) {
			e.forget(name)
		}
		e.recall(name)
	}
}

// isSelected reports whether --limit selects the host.
func (e *Engine) isSelected(host string) bool {
	return e.Limit == nil || slices.Contains(e.Limit, host)
}

// recall loads the facts of a host that a previous run stored. It does so once per host.
func (e *Engine) recall(name string) {
	if e.Facts == nil || e.recalled[name] {
		return
	}
	e.recalled[name] = true
	kept, err := e.Facts.Load(name)
	if err != nil {
		e.warnOfFacts(err)
		return
	}
	if kept != nil {
		e.host(name).Recall(kept)
	}
}

// keep stores the facts of a host for later runs.
func (e *Engine) keep(name string, h *vars.Host, kind module.FactKind) {
	if kind != module.Gathered && kind != module.SetFactCacheable {
		return
	}
	if err := e.Facts.Save(name, h.Kept()); err != nil {
		e.warnOfFacts(err)
	}
}

func (e *Engine) forget(name string) {
	if err := e.Facts.Remove(name); err != nil {
		e.warnOfFacts(err)
	}
}

// warnOfFacts warns that facts could not be stored or read. The run continues without them.
func (e *Engine) warnOfFacts(err error) {
	e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "%s", err)})
}
