package engine

import (
	"slices"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/source"
	"kubekey/pkg/vars"
)

// knows reports whether a play need not gather the facts of a host.
func (e *Engine) knows(h *vars.Host) bool {
	return e.Plays.Gathering == Smart && h.Gathered()
}

// recallAll begins a run with the facts that are kept of the inventory's hosts.
func (e *Engine) recallAll() {
	for _, name := range e.Inventory.Hosts() {
		if e.FlushFacts && e.wanted(name) {
			e.forget(name)
		}
		e.recall(name)
	}
}

// wanted reports whether --limit leaves the host in.
func (e *Engine) wanted(host string) bool { return e.Limit == nil || slices.Contains(e.Limit, host) }

// recall gives a host the facts that an earlier run kept, the first time.
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

// keep writes the facts of a host for later runs.
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

// warnOfFacts tells that facts could not be kept or read: the run goes on without.
func (e *Engine) warnOfFacts(err error) {
	e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "%s", err)})
}
