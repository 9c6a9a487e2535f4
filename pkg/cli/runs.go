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
	var critical bool
	show := &cobra.Command{
		Use: "show [ID]", Short: "Show a run again, by its id or a prefix of it; the last run by default",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			switch {
			case page != "" && critical:
				return usage("--html and --critical-path: the page marks the critical path; pass one of the two")
			case critical:
				return a.showCriticalPath(dir, id)
			case page != "":
				return a.writePage(dir, id, page)
			}
			return a.showRun(dir, id, &out)
		},
	}
	out.flags(show.Flags())
	show.Flags().StringVar(&page, "html", "",
		"write the run to this file as one HTML page: timeline, critical path, failures, changes, slow tasks")
	show.Flags().BoolVar(&critical, "critical-path", false,
		"show the tasks and hosts that determined how long the run took, in order of time")
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

// showCriticalPath prints the critical path of a run as a table.
func (a *app) showCriticalPath(flag, id string) error {
	dir, err := workDir(flag)
	if err != nil {
		return err
	}
	path, wrong, err := report.Critical(dir, id)
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	a.diagnostics(wrong)
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tTOOK\tSHARE\tHOST\tTASK")
	for _, s := range path.Steps {
		share := fmt.Sprintf("%.0f%%", 100*s.Took.Seconds()/max(path.Took.Seconds(), 1e-6))
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", seconds(s.From), seconds(s.Took), share, ui.Inline(s.Host),
			ui.Inline(stepText(s)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "The run took %s.\n", seconds(path.Took))
	return nil
}

// stepText describes a step of the critical path.
func stepText(s report.CriticalStep) string {
	switch {
	case s.Brief > 0:
		return fmt.Sprintf("%d short tasks", s.Brief)
	case s.Task == "":
		return "no task: kk worked, or waited for an answer"
	case s.Job:
		return s.Task + " (in the background)"
	case s.Hosts > 1:
		return fmt.Sprintf("%s (%d hosts one after the other)", s.Task, s.Hosts)
	}
	return s.Task
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
