package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/engine"
	"kubekey/pkg/engine/resume"
	"kubekey/pkg/event"
	"kubekey/pkg/inventory"
	"kubekey/pkg/journal"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

// runFlags are the flags of commands that run playbooks.
type runFlags struct {
	inputs
	output  outputFlags
	connect connectFlags

	tags, skipTags []string
	check, diff    bool
	forks          int
	forceHandlers  bool
	startAt        string
	resume         string
	step           bool
	flushCache     bool

	listHosts, listTasks, listTags, syntaxCheck bool

	inspect func(*session) source.Diagnostics // further checks before a run; may be nil
	edit    inventoryEdit                     // changes the inventory files; may be nil
}

// outputFlags control how a run is shown.
type outputFlags struct {
	format    string
	verbosity int
	timing    bool
}

func (o *outputFlags) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.format, "output", "o", "text",
		"output format: text, ansible (Ansible's exact format), json (one event per line), ansible-json (one document, as "+
			"Ansible's json callback)")
	f.CountVarP(&o.verbosity, "verbose", "v", "show more: -v results, -vv task paths, -vvv connections")
	f.BoolVar(&o.timing, "timing", false, "show how long each task took")
}

// connectFlags control how hosts are reached.
type connectFlags struct {
	user, connection, key  string
	timeout                int
	become                 bool
	becomeMethod           string
	becomeUser             string
	askPass, askBecomePass bool
	hostKey                string
	knownHosts             []string

	sshCommonArgs, sshExtraArgs      string
	passwordFile, becomePasswordFile string

	sink event.Sink // shows warnings of connections; set when a run starts
}

func (c *connectFlags) flags(f *pflag.FlagSet) {
	f.StringVarP(&c.user, "user", "u", "", "user to log in as")
	f.StringVar(&c.connection, "connection", "", "connection type: ssh or local; -c ssh and -c local work too")
	f.StringVar(&c.key, "private-key", "", "private key file to log in with")
	f.StringVar(&c.key, "key-file", "", "")
	_ = f.MarkHidden("key-file")
	f.IntVarP(&c.timeout, "timeout", "T", 0, "seconds to wait for a connection (default 10)")
	f.BoolVarP(&c.become, "become", "b", false, "run tasks as another user")
	f.StringVar(&c.becomeMethod, "become-method", "", "how to become another user: sudo or su")
	f.StringVar(&c.becomeUser, "become-user", "", "user to become (default root)")
	f.BoolVarP(&c.askBecomePass, "ask-become-pass", "K", false, "ask for the become password")
	f.BoolVarP(&c.askPass, "ask-pass", "k", false, "ask for the login password")
	f.StringVar(&c.passwordFile, "connection-password-file", "",
		"file with the login password on its first line, or an executable that prints it")
	f.StringVar(&c.becomePasswordFile, "become-password-file", "",
		"file with the become password on its first line, or an executable that prints it")
	for old, v := range map[string]*string{"conn-pass-file": &c.passwordFile, "become-pass-file": &c.becomePasswordFile} {
		f.StringVar(v, old, "", "")
		_ = f.MarkHidden(old)
	}
	f.StringVar(&c.sshCommonArgs, "ssh-common-args", "",
		"arguments of the ssh command (-o, -J, -i), for hosts without ansible_ssh_common_args")
	f.StringVar(&c.sshExtraArgs, "ssh-extra-args", "", "further ssh arguments, for hosts without ansible_ssh_extra_args")
	f.StringVar(&c.hostKey, "ssh-host-key", "",
		"unknown host keys: strict (reject, the default), accept-new (accept and remember), insecure (do not check)")
	f.StringArrayVar(&c.knownHosts, "known-hosts", nil, "file of known host keys (default ~/.ssh/known_hosts)")
}

func (r *runFlags) flags(f *pflag.FlagSet) {
	r.inputs.flags(f)
	r.output.flags(f)
	r.connect.flags(f)
	f.StringSliceVarP(&r.tags, "tags", "t", nil, "run only tasks with these tags")
	f.StringSliceVar(&r.skipTags, "skip-tags", nil, "skip tasks with these tags")
	f.BoolVarP(&r.check, "check", "C", false, "predict changes without making any")
	f.BoolVarP(&r.diff, "diff", "D", false, "show changes of files")
	f.IntVarP(&r.forks, "forks", "f", 50, "number of hosts to work on at once")
	f.BoolVar(&r.forceHandlers, "force-handlers", false, "run notified handlers even on failed hosts")
	f.StringVar(&r.startAt, "start-at-task", "", "skip all tasks before the one with this name (or glob)")
	f.StringVar(&r.resume, "resume", "", "resume an earlier run (its id, or last) where each host stopped, with its "+
		"variables and facts")
	f.BoolVar(&r.step, "step", false, "ask before each task")
	f.BoolVar(&r.flushCache, "flush-cache", false, "drop the facts cached by earlier runs")
	f.BoolVar(&r.listHosts, "list-hosts", false, "list the hosts of each play without running it")
	f.BoolVar(&r.listTasks, "list-tasks", false, "list the tasks without running them")
	f.BoolVar(&r.listTags, "list-tags", false, "list the tags without running anything")
	f.BoolVar(&r.syntaxCheck, "syntax-check", false, "check the playbooks without running them")
}

func (a *app) runCommand() *cobra.Command {
	r := &runFlags{}
	var from projectFlags
	cmd := &cobra.Command{
		Use:   "run PLAYBOOK...",
		Short: "Run playbooks, in order",
		Long: "Run playbooks, in order. A playbook is a file, a built-in playbook (playbooks/precheck.yaml), " +
			"or, with --project-addr, a file of a git repository. Without an inventory it runs on this machine.\n\n" +
			"Exit codes: 0 success, 1 error, 2 a host failed, 4 invalid input or a host unreachable, 5 invalid usage, 99 " +
			"interrupted.",
		Args: needPlaybook,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := from.valid(); err != nil {
				return err
			}
			if from.addr != "" {
				dir, err := a.checkout(cmd.Context(), &from, r.workdir)
				if err != nil {
					return err
				}
				for i := range args {
					args[i] = filepath.Join(dir, args[i])
				}
			}
			return a.runPlaybooks(cmd.Context(), r, args)
		},
	}
	r.flags(cmd.Flags())
	from.flags(cmd.Flags())
	return cmd
}

func (a *app) runPlaybooks(ctx context.Context, r *runFlags, names []string) error {
	r.configs = r.connect.named(r.configs)
	if err := r.valid(); err != nil {
		return err
	}
	var from *resume.Memory
	var err error
	if r.resume != "" {
		if from, names, err = a.resume(r, names); err != nil {
			return err
		}
	}
	if r.playbooks, err = a.findPlaybooks(names); err != nil {
		return err
	}
	s, err := a.begin(ctx, &r.inputs)
	if err != nil {
		return err
	}
	if r.edit != nil && !s.inventoryFails {
		after, ds := r.edit.plan(ctx, s.inventory)
		s.diagnostics.Add(ds...)
		if s.inventoryFails = ds.Err() != nil; !s.inventoryFails {
			s.inventory = after
		}
	}
	if r.inspect != nil && !s.inventoryFails {
		s.diagnostics.Add(r.inspect(s)...)
	}
	sel := project.Selection{Tags: r.tags, Skip: r.skipTags}
	var limit []string
	var noHosts error
	if !s.inventoryFails {
		limit, noHosts = a.limit(s, r.limit)
	}
	books, linker, err := a.load(s, sel, names, func(books []*project.Playbook) source.Diagnostics {
		if s.inventoryFails || noHosts != nil {
			return nil
		}
		e := a.quietEngine(s)
		e.Defaults.Connection = r.connect.connection
		return e.CheckHosts(ctx, books, limit)
	})
	if err != nil {
		return err
	}
	if noHosts != nil {
		return noHosts
	}
	if limit != nil && isBuiltin(books) && !slices.Contains(limit, "localhost") {
		limit = append(limit, "localhost") // the control node, where downloads and certificates are made
	}
	if r.listHosts || r.listTasks || r.listTags || r.syntaxCheck {
		return a.list(ctx, r, s, books, limit)
	}
	o := engine.Options{Project: a.project(s, linker, books), Mode: a.mode(r), Record: a.record(s)}
	o.Limit, o.Memory = limit, from
	o.ConfigFile, o.Facts = a.settings.AnsibleCfg, a.factCache(s)
	o.User, o.Command, o.Dir = operator(), a.commandLine(a.args), workingDir()
	if o.Reach, err = a.reach(ctx, r); err != nil {
		return err
	}
	if r.edit == nil {
		return a.runEngine(ctx, r, o, books)
	}
	if err := r.edit.begin(a, r); err != nil {
		return err
	}
	return r.edit.end(ctx, a, r, a.runEngine(ctx, r, o, books))
}

// mode returns the engine mode that the flags select.
func (a *app) mode(r *runFlags) engine.Mode {
	m := engine.Mode{
		Forks: r.forks, Check: r.check, Diff: r.diff, Verbosity: r.output.verbosity,
		ForceHandlers: r.forceHandlers, LimitText: strings.Join(r.limit, ","),
		Tags: r.tags, SkipTags: r.skipTags, StartAt: r.startAt, FlushFacts: r.flushCache, Ask: a.askPerson,
	}
	if r.step {
		m.Step = a.stepper(r.output.format)
	}
	return m
}

// reach returns the settings with which a run reaches its hosts.
func (a *app) reach(ctx context.Context, r *runFlags) (engine.Reach, error) {
	defaults, err := a.defaults(ctx, &r.connect)
	if a.hosts != nil {
		return engine.Reach{Connect: a.hosts.Connect, Perform: a.hosts.Perform, Defaults: defaults}, err
	}
	return engine.Reach{Connect: traced(a.connect(&r.connect), r.output.verbosity, a.Err, a.secret), Defaults: defaults},
		err
}

// operator returns the user who runs kk as user@machine. Unknown parts are omitted.
func operator() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	machine, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + machine
}

func (a *app) runEngine(ctx context.Context, r *runFlags, o engine.Options, books []*project.Playbook) error {
	log, done, err := a.log(r.output.verbosity)
	if err != nil {
		return err
	}
	defer done()
	slowest := 0
	if isBuiltin(books) {
		slowest = 10
	}
	screen, err := ui.New(ui.Options{
		Out: a.Out, Err: a.Err, TTY: isTerminal(a.Out.Writer()), Width: width(a.Out),
		Color:     ui.UseColor(isTerminal(a.Out.Writer()), os.Getenv),
		Verbosity: r.output.verbosity, Timing: r.output.timing, Format: ui.Format(r.output.format), Redact: a.secret,
		Slowest: slowest, NoSkipped: !a.settings.DisplaySkippedHosts, Continue: a.goOn(o.RunID, isBuiltin(books)),
	})
	if err != nil {
		return usage("%s", err)
	}
	record, err := journal.Open(o.WorkDir, o.RunID, a.secret)
	if err != nil {
		_ = screen.Close()
		return err
	}
	o.Sink = append(log, screen, record)
	a.boundOutputs(&o, record)
	if a.settings.RetryFilesEnabled {
		o.Sink = &retrySink{folder: a.settings.RetryFilesSavePath, next: o.Sink}
	}
	if r.edit != nil {
		o.Sink = r.edit.watch(o.Sink)
	}
	r.connect.sink = o.Sink
	holdForQuestions(&o, screen)
	a.runID = o.RunID
	defer outlivePipe()()
	code := engine.New(o).Run(ctx, books)
	if err := record.Close(); err != nil {
		a.warn("write the journal: %s", err)
	}
	if err := screen.Close(); err != nil {
		return err
	}
	return exit(code)
}

// outlivePipe keeps kk running when the reader of its output is gone, until stop is called. Other commands are
// ended by SIGPIPE, like any program that only prints. A run changes hosts: ending it there would leave them half
// configured just because nobody reads the output.
func outlivePipe() (stop func()) {
	ignored := make(chan os.Signal, 1) // not signal.Ignore, which child processes would inherit
	signal.Notify(ignored, syscall.SIGPIPE)
	return func() { signal.Stop(ignored) }
}

// boundOutputs configures the limits for command output in memory and on disk.
func (a *app) boundOutputs(o *engine.Options, record *journal.Writer) {
	o.KeepOutput = a.settings.OutputMemory << 10
	if a.settings.OutputDisk == 0 {
		o.NoOverflow = "the setting output_disk is 0"
		return
	}
	record.BoundOutputs(int64(a.settings.OutputDisk) << 20)
	o.Overflow = func(t *event.Task, host, stream string) module.Overflow {
		return record.Output(t.ID, t.Name, host, stream)
	}
}

// limit resolves --limit. A nil result means no limit.
func (a *app) limit(s *session, limit []string) ([]string, error) {
	if len(limit) == 0 {
		return nil, nil
	}
	hosts := s.inventory.Hosts()
	if !slices.Contains(hosts, "localhost") {
		hosts = append(hosts, "localhost")
	}
	m, err := s.inventory.Limit(hosts, limit, inventory.LimitOptions{
		MatchOptions: inventory.MatchOptions{RunID: s.id},
		ReadFile:     func(name string) ([]byte, error) { return a.tree.Raw().Read(name, source.MaxFile) },
		Failed:       func() ([]string, error) { return journal.FailedHosts(s.workDir, "") },
	})
	if err != nil {
		return nil, &exitError{engine.ExitError, err}
	}
	for _, u := range m.Unmatched {
		a.warn("Could not match supplied host pattern, ignoring: %s", u.Pattern)
	}
	if len(m.Hosts) == 0 {
		why := ""
		if slices.Contains(limit, "@failed") {
			why = " (no host failed in the last run)"
		}
		return nil, &exitError{engine.ExitError,
			errors.New("Specified inventory, host pattern and/or --limit leaves us with no hosts to target." +
				why)} //nolint:staticcheck // users search for this text
	}
	return m.Hosts, nil
}

// defaults returns the connection defaults from the command line.
func (a *app) defaults(ctx context.Context, c *connectFlags) (engine.Defaults, error) {
	set := a.settings
	d := engine.Defaults{
		User: c.user, Connection: c.connection, KeyFile: c.key, Port: set.RemotePort, Become: c.become,
		BecomeMethod: c.becomeMethod, BecomeUser: c.becomeUser, Timeout: time.Duration(c.timeout) * time.Second,
		BecomeExe: set.BecomeExe, BecomeFlags: set.BecomeFlags,
		SSHArgs: set.SSHArgs, SSHCommonArgs: c.sshCommonArgs, SSHExtraArgs: c.sshExtraArgs,
	}
	for _, q := range []struct {
		wanted bool
		file   string
		prompt string
		into   *redact.Secret
	}{
		{c.askPass, c.passwordFile, "SSH password: ", &d.Password},
		{c.askBecomePass, c.becomePasswordFile, "BECOME password: ", &d.BecomePass},
	} {
		if !q.wanted && q.file != "" {
			text, err := a.readPassword(ctx, q.file)
			if err != nil {
				return d, usage("%s", err)
			}
			*q.into = a.secret.Secret(text)
		}
		if !q.wanted {
			continue
		}
		text, ok, err := a.ask(ctx, q.prompt, false)
		if err != nil {
			return d, err
		}
		if !ok {
			return d, usage("%sthere is no terminal and standard input is empty", q.prompt)
		}
		*q.into = a.secret.Secret(text)
	}
	if d.BecomePass.IsZero() && c.askBecomePass {
		d.BecomePass = d.Password
	}
	return d, nil
}
