package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/engine"
	"kubekey/pkg/event"
	"kubekey/pkg/facts"
	"kubekey/pkg/project"
	"kubekey/pkg/settings"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

// flagWorkdir exists on every command that uses hosts or the journal.
const flagWorkdir = "workdir"

// obey reads the settings and applies them to the flags that are not on the command line. Commands that use neither
// hosts, journals nor vaults need no settings.
func (a *app) obey(cmd *cobra.Command) error {
	if flags := cmd.Flags(); flags.Lookup(flagWorkdir) == nil && flags.Lookup("vault-password-file") == nil {
		return nil
	}
	loaded, ds := a.loadSettings()
	if ds.Err() != nil {
		return &exitError{engine.ExitInput, ds.Errors()}
	}
	a.settings, a.settingProblems = loaded, ds
	a.tree.Patience = a.inputLimit()
	for _, v := range loaded.Values {
		if err := fillFlag(cmd.Flags(), v); err != nil {
			return usage("%s: %s", v.Origin, err)
		}
	}
	return nil
}

func (a *app) loadSettings() (*settings.Loaded, source.Diagnostics) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, source.Diagnostics{source.Errorf(source.Pos{}, "find the working folder: %s", err)}
	}
	home, _ := os.UserHomeDir() // without a home folder, paths that begin with ~ are not expanded
	return settings.Load(settings.Places{Environ: os.Environ(), Dir: dir, Home: home, Etc: "/etc", Files: a.tree})
}

// fillFlag sets the flag of a setting. The host key setting is skipped: the flag overrides host variables, and the
// setting must not.
func fillFlag(flags *pflag.FlagSet, v settings.Value) error {
	f := flags.Lookup(v.Setting.Flag)
	if f == nil || f.Changed || !v.Changed() || v.Setting.Flag == "ssh-host-key" {
		return nil
	}
	if v.Setting.Flag == "output" && flags.Lookup("verbose") == nil {
		return nil // on a command that runs nothing, the flag has another meaning
	}
	for _, text := range v.Texts() {
		if err := f.Value.Set(text); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) settingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the settings: kk.yaml, the environment, ansible.cfg"}
	cmd.AddCommand(a.dumpCommand(), a.listSettingsCommand(), a.initSettingsCommand())
	return cmd
}

func (a *app) dumpCommand() *cobra.Command {
	var format string
	var changed bool
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Show the value of each setting and where it was set",
		Long: "Show the value of each setting and where it was set. Flags that override a setting are accepted too, so " +
			"that the command shows " +
			"what a run with them would use. For password files the name is shown, never the content.",
		Example: "  kk config dump --only-changed\n  kk config dump -o yaml --forks 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--format", format, "text", "json", "yaml"); err != nil {
				return err
			}
			loaded, ds := a.loadSettings()
			if ds.Err() != nil {
				return &exitError{engine.ExitInput, ds}
			}
			a.diagnostics(ds)
			return a.dumpSettings(withFlags(loaded.Values, cmd.Flags()), format, changed)
		},
	}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	(&runFlags{}).flags(all)
	for _, s := range settings.Table() {
		if f := all.Lookup(s.Flag); f != nil && s.Name != "output" {
			cmd.Flags().AddFlag(f)
		}
	}
	cmd.Flags().StringVarP(&format, "format", "o", "text", "output format: text, json, yaml")
	cmd.Flags().BoolVar(&changed, "only-changed", false, "show only settings that differ from their default")
	return cmd
}

// withFlags overrides settings with the values of flags.
func withFlags(values []settings.Value, flags *pflag.FlagSet) []settings.Value {
	out := slices.Clone(values)
	for i, v := range out {
		f := flags.Lookup(v.Setting.Flag)
		if f == nil || !f.Changed {
			continue
		}
		out[i].Origin = "flag --" + f.Name
		if list, ok := f.Value.(pflag.SliceValue); ok {
			out[i].Value = list.GetSlice()
		} else {
			out[i].Value = typedLike(v.Value, f.Value.String())
		}
	}
	return out
}

// typedLike converts a flag's text to the type of the setting.
func typedLike(like any, text string) any {
	var n int
	switch like.(type) {
	case bool:
		return text == "true"
	case int:
		if _, err := fmt.Sscan(text, &n); err == nil {
			return n
		}
	}
	return text
}

func (a *app) dumpSettings(values []settings.Value, format string, changed bool) error {
	if changed {
		values = slices.DeleteFunc(values, func(v settings.Value) bool { return !v.Changed() })
	}
	text, err := settings.Format(values, format)
	if err != nil {
		return err
	}
	out := a.data()
	if format == "text" {
		out = a.Out
	}
	_, err = fmt.Fprint(out, a.secret.Text(text))
	return err
}

func (a *app) listSettingsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all settings: default, sources, meaning", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var b strings.Builder
			for _, s := range settings.Table() {
				fmt.Fprintf(&b, "%s (%s)\n", s.Name, s.Type)
				for _, line := range s.Describe() {
					fmt.Fprintf(&b, "  %s\n", line)
				}
			}
			_, err := fmt.Fprint(a.Out, b.String())
			return err
		},
	}
}

func (a *app) initSettingsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "Print a kk.yaml with every setting as a comment",
		Long: "Print a kk.yaml with every setting as a comment: kk config init > kk.yaml.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.data(), settings.Example())
			return err
		},
	}
}

// playDefaults returns the settings that change the behavior of a playbook. Builtin playbooks always get the
// default values because they are written for them.
func (a *app) playDefaults(books []*project.Playbook) engine.PlayDefaults {
	if isBuiltin(books) {
		return engine.PlayDefaults{}
	}
	s := a.settings
	return engine.PlayDefaults{
		Gathering: engine.Gathering(s.Gathering), Free: s.Strategy == "free",
		AnyErrorsFatal: s.AnyErrorsFatal, MergeDicts: s.HashBehaviour == "merge",
	}
}

// factCache returns the cache that keeps facts for later runs, or nil if facts are not cached.
func (a *app) factCache(s *session) *facts.Cache {
	if a.settings.FactCaching != "jsonfile" {
		return nil
	}
	dir := a.settings.FactCachingConnection
	if dir == "" {
		dir = filepath.Join(s.workDir, "facts")
	}
	return &facts.Cache{Dir: dir, Limit: time.Duration(a.settings.FactCachingTimeout) * time.Second}
}

// log appends the text of a run to the log file of the settings, if one is set.
func (a *app) log(verbosity int) (sinks event.Fanout, done func(), err error) {
	path := a.settings.LogPath
	if path == "" {
		return nil, func() {}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, usage("the setting log_path: %s", err)
	}
	screen := ui.NewScreen(file)
	fmt.Fprintf(screen, "\n%s\n", time.Now().Format(time.RFC3339))
	text, err := ui.New(ui.Options{Out: screen, Err: screen, Verbosity: verbosity, Redact: a.secret})
	if err != nil {
		return nil, nil, err
	}
	return event.Fanout{text}, func() {
		_ = text.Close()
		if err := errors.Join(screen.Flush(), file.Close()); err != nil {
			a.warn("the setting log_path: %s", err)
		}
	}, nil
}
