package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/difflib"
	"kubekey/pkg/engine"
	"kubekey/pkg/event"
	"kubekey/pkg/inventory"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
	"kubekey/pkg/value"
)

// Flags of kk add nodes, and the groups of a cluster's hosts.
const (
	flagControlPlane = "control-plane"
	flagWorker       = "worker"

	groupControlPlane = "kube_control_plane"
	groupWorker       = "kube_worker"
)

// inventoryEdit changes the inventory files of a run.
type inventoryEdit interface {
	// plan returns the inventory that the run has, and problems. Nothing is written.
	plan(context.Context, *inventory.Inventory) (*inventory.Inventory, source.Diagnostics)
	// begin is called before the first host is reached.
	begin(*app, *runFlags) error
	// watch returns the sink of the run's events.
	watch(event.Sink) event.Sink
	// end is called after the run. err is its error.
	end(ctx context.Context, a *app, r *runFlags, err error) error
}

func newNodeFlags(f *pflag.FlagSet) {
	f.StringSlice(flagControlPlane, nil, "control planes to add to the inventory file and to the cluster: NAME=ADDRESS")
	f.StringSlice(flagWorker, nil, "workers to add to the inventory file and to the cluster: NAME=ADDRESS")
}

// newNodes returns the hosts that the flags of kk add nodes list.
func newNodes(cmd *cobra.Command) ([]inventory.Addition, error) {
	var out []inventory.Addition
	for _, f := range []struct{ flag, group, near string }{
		{flagControlPlane, groupControlPlane, groupWorker}, {flagWorker, groupWorker, groupControlPlane},
	} {
		hosts, err := cmd.Flags().GetStringSlice(f.flag)
		if err != nil {
			return nil, err
		}
		for _, h := range hosts {
			name, address, ok := strings.Cut(strings.TrimSpace(h), "=")
			if !ok || name == "" || address == "" {
				return nil, usage("--%s: %q is not NAME=ADDRESS, as node4=10.0.0.4", f.flag, h)
			}
			out = append(out, inventory.Addition{Name: name, Address: address, Group: f.group, Near: f.near})
		}
	}
	return out, nil
}

// addedNodes returns the variable with the hosts that kk add nodes adds: its arguments, and those of its flags.
func addedNodes(cmd *cobra.Command, args []string) *value.Dict {
	hosts, _ := newNodes(cmd) // errors are reported by editForAdd
	for _, h := range hosts {
		if !slices.Contains(args, h.Name) {
			args = append(args, h.Name)
		}
	}
	return names("add_nodes")(cmd, args)
}

// editForAdd returns the edit of kk add nodes, nil without hosts to add to the inventory.
func editForAdd(cmd *cobra.Command, _ []string) (inventoryEdit, error) {
	hosts, err := newNodes(cmd)
	if err != nil || len(hosts) == 0 {
		return nil, err
	}
	return &additions{hosts: hosts}, nil
}

// additions adds hosts to the inventory file before the run. The file keeps them if the run fails: the same command
// continues then.
type additions struct {
	hosts   []inventory.Addition
	edit    *inventory.Edit
	written bool
}

func (n *additions) plan(ctx context.Context, inv *inventory.Inventory) (*inventory.Inventory, source.Diagnostics) {
	edit, after, ds := inv.Add(ctx, n.hosts)
	n.edit = edit
	return after, ds
}

func (n *additions) begin(a *app, r *runFlags) error {
	if n.edit == nil {
		return nil
	}
	if err := a.applyEdit(n.edit, r); err != nil || r.check {
		return err
	}
	n.written = true
	a.Err.Message(fmt.Sprintf("%s: added %s", ui.Inline(n.edit.Name), n.names()))
	return nil
}

func (n *additions) names() string {
	var out []string
	for _, h := range n.hosts {
		out = append(out, h.Name)
	}
	return strings.Join(out, ", ")
}

func (*additions) watch(s event.Sink) event.Sink { return s }

func (n *additions) end(_ context.Context, a *app, _ *runFlags, err error) error {
	if err != nil && n.written {
		a.Err.Message(fmt.Sprintf("%s keeps %s: run the same command again to continue, or remove them from the file",
			ui.Inline(n.edit.Name), n.names()))
	}
	return err
}

// editForDelete returns the edit of kk delete nodes.
func editForDelete(_ *cobra.Command, args []string) (inventoryEdit, error) {
	return &removals{names: args}, nil
}

// removals removes hosts from the inventory files after the run has deleted them.
type removals struct {
	names    []string
	deleted  []string // what the run reported as deleted
	reported bool     // it did
	before   *inventory.Inventory
	edits    []*inventory.Edit // if all are deleted
	bad      source.Diagnostics
}

func removal(names []string) inventory.Removal {
	return inventory.Removal{Names: names, From: []string{groupControlPlane, groupWorker, "etcd"},
		Keep: []string{"image_registry", "nfs"}}
}

// plan leaves the inventory of the run as it is. Where hosts cannot be removed from it, that is a warning: they are
// deleted all the same.
func (n *removals) plan(ctx context.Context, inv *inventory.Inventory) (*inventory.Inventory, source.Diagnostics) {
	n.before = inv
	if len(inv.Sources()) == 0 {
		return inv, nil
	}
	n.edits, _, n.bad = inv.Remove(ctx, removal(n.names))
	var ds source.Diagnostics
	for _, d := range n.bad.Errors() {
		warning := *d
		warning.Severity = source.Warning
		warning.Summary = "the deleted hosts stay in the inventory: " + d.Summary
		ds.Add(&warning)
	}
	return inv, ds
}

func (n *removals) begin(a *app, r *runFlags) error {
	if n.bad.Err() != nil || !r.check {
		return nil
	}
	for _, e := range n.edits {
		if err := a.applyEdit(e, r); err != nil {
			return err
		}
	}
	return nil
}

func (n *removals) watch(next event.Sink) event.Sink { return &deletedSink{n, next} }

// deletedSink collects the hosts that the playbook reports as deleted.
type deletedSink struct {
	of   *removals
	next event.Sink
}

// Emit implements event.Sink: it forwards e.
func (s *deletedSink) Emit(e event.Event) {
	if r, ok := e.(event.RunEnded); ok && r.Results != nil {
		hosts, reported := r.Results.Get("deleted_hosts")
		s.of.reported = reported
		list, _ := hosts.([]any)
		for _, h := range list {
			s.of.deleted = append(s.of.deleted, value.Str(h))
		}
	}
	s.next.Emit(e)
}

func (n *removals) end(ctx context.Context, a *app, r *runFlags, err error) error {
	if r.check || n.bad.Err() != nil || len(n.edits) == 0 {
		return err
	}
	if err != nil {
		a.Err.Message(fmt.Sprintf("%s stays as it is: the run did not succeed", n.files(n.edits)))
		return err
	}
	if !n.reported { // nobody confirmed the plan, or the task that reports it was not chosen
		return nil
	}
	for _, name := range n.names {
		if !slices.Contains(n.deleted, name) {
			a.Err.Message(fmt.Sprintf("%s: %s did not answer and stays in the inventory: run the same command again when it "+
				"is back, or remove it from the file", n.files(n.edits), ui.Inline(name)))
		}
	}
	edits, _, ds := n.before.Remove(ctx, removal(n.deleted)) // the files may have changed during the run
	if ds.Err() != nil {
		return &exitError{engine.ExitError, ds}
	}
	for _, e := range edits {
		if err := a.applyEdit(e, r); err != nil {
			return err
		}
		a.Err.Message(fmt.Sprintf("%s: removed %s", ui.Inline(e.Name), ui.Inline(strings.Join(n.deleted, ", "))))
	}
	return nil
}

func (*removals) files(edits []*inventory.Edit) string {
	var out []string
	for _, e := range edits {
		out = append(out, ui.Inline(e.Name))
	}
	return strings.Join(out, ", ")
}

// applyEdit writes an edited inventory file, unless it changed since it was read. In check mode it only shows the
// change; with --diff it shows it too.
func (a *app) applyEdit(e *inventory.Edit, r *runFlags) error {
	if r.check || r.diff {
		to := io.Writer(a.Out)
		if r.output.format != "text" {
			to = a.Err
		}
		lines := difflib.Unified(difflib.Lines(string(e.Before)), difflib.Lines(string(e.After)), e.Name, e.Name+" (edited)")
		if _, err := io.WriteString(to, a.secret.Text(strings.Join(lines, ""))); err != nil {
			return err
		}
	}
	if r.check {
		return nil
	}
	now, err := a.tree.Raw().Read(e.Path, source.MaxFile)
	if err == nil && !bytes.Equal(now, e.Before) {
		err = fmt.Errorf("it was changed meanwhile: run the command again")
	}
	if err == nil {
		err = replaceFile(e.Path, e.After, false)
	}
	if err != nil {
		return &exitError{engine.ExitError, fmt.Errorf("edit %s: %w", e.Name, err)}
	}
	return nil
}
