package cli

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/journal"
	"kubekey/pkg/report"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

func (a *app) runsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "Show earlier runs"}
	var dir string
	list := &cobra.Command{
		Use: "list", Short: "List the runs in the journal, newest first", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listRuns(dir) },
	}
	var out outputFlags
	var page string
	show := &cobra.Command{
		Use: "show [ID]", Short: "Show a run again, by its id or a prefix of it; the last run by default",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			if page != "" {
				return a.writePage(dir, id, page)
			}
			return a.showRun(dir, id, &out)
		},
	}
	out.flags(show.Flags())
	show.Flags().StringVar(&page, "html", "",
		"write the run to this file as one HTML page: timeline, failures, changes, slow tasks")
	for _, c := range []*cobra.Command{list, show} {
		c.Flags().StringVar(&dir, flagWorkdir, "", "folder of the journal (default $KK_WORKDIR or ~/.kk)")
	}
	cmd.AddCommand(list, show)
	return cmd
}

func (a *app) listRuns(flag string) error {
	dir, err := workDir(flag)
	if err != nil {
		return err
	}
	runs, err := journal.List(dir)
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	var wrong source.Diagnostics
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTARTED\tTOOK\tEXIT\tFAILED\tPLAYBOOKS")
	for _, r := range runs {
		wrong.Add(r.Problems...)
		took, code := "unfinished", "-"
		if r.Finished() {
			took, code = r.Ended.Sub(r.Started).Round(100*time.Millisecond).String(), fmt.Sprint(r.ExitCode)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", ui.Inline(r.ID), r.Started.Local().Format("2006-01-02 15:04:05"), took,
			code,
			len(r.Failed), ui.Inline(strings.Join(r.Playbooks, " ")))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.diagnostics(wrong)
	return nil
}

// writePage writes the HTML page of a run and reports its path.
func (a *app) writePage(flag, id, page string) error {
	dir, err := workDir(flag)
	if err != nil {
		return err
	}
	wrong, err := report.Write(page, dir, id)
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	a.diagnostics(wrong)
	fmt.Fprintf(a.Out, "wrote %s: open it in a browser\n", page)
	return nil
}

func (a *app) showRun(flag, id string, o *outputFlags) error {
	dir, err := workDir(flag)
	if err != nil {
		return err
	}
	if err := oneOf("--output", o.format, ui.Formats()...); err != nil {
		return err
	}
	var now time.Time // time of the event that is shown
	screen, err := ui.New(ui.Options{
		Now: func() time.Time { return now },
		Out: a.Out, Err: a.Err, Color: ui.UseColor(isTerminal(a.Out.Writer()), os.Getenv), Width: width(a.Out),
		Verbosity: o.verbosity, Timing: o.timing, Format: ui.Format(o.format), Redact: a.secret,
	})
	if err != nil {
		return usage("%s", err)
	}
	if err := journal.Show(dir, id, screen, func(at time.Time) { now = at }); err != nil {
		_ = screen.Close()
		return &exitError{engine.ExitError, err}
	}
	return screen.Close()
}
