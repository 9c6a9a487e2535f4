package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

// strict makes a command tree reject unknown input with a hint. It separates usage errors (exit 5) from errors of
// the command itself (exit 1). obey runs before each command.
func strict(root *cobra.Command, obey func(*cobra.Command) error) {
	root.SetFlagErrorFunc(flagError)
	strictCommand(root, obey)
}

func strictCommand(cmd *cobra.Command, obey func(*cobra.Command) error) {
	for _, sub := range cmd.Commands() {
		strictCommand(sub, obey)
	}
	if cmd.HasSubCommands() {
		cmd.Args, cmd.DisableFlagsInUseLine = knownCommand, true
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		return
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := obey(cmd); err != nil {
			return err
		}
		err := run(cmd, args)
		var e *exitError
		if err == nil || errors.As(err, &e) {
			return err
		}
		return &exitError{engine.ExitError, err}
	}
}

// knownCommand rejects arguments of a command that only has subcommands.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	help := source.DidYouMean(args[0], names)
	if help == "" {
		help = "choose from " + strings.Join(names, ", ")
	}
	return usage("%s: unknown command %q (%s)", cmd.CommandPath(), args[0], help)
}

var (
	unknownFlag = regexp.MustCompile(`^unknown flag: --(\S+)`)
	strconvTail = regexp.MustCompile(`: strconv\.\w+: parsing .*$`)
)

// flagError adds advice to the error of an unknown or malformed flag.
func flagError(cmd *cobra.Command, err error) error {
	text := strconvTail.ReplaceAllString(err.Error(), ": expected a number")
	help := fmt.Sprintf("%s --help lists the flags", cmd.CommandPath())
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		if near := source.Nearest(m[1], flagNames(cmd)); near != "" {
			help = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return usage("%s (%s)", text, help)
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// valid rejects values that no run can start with.
func (r *runFlags) valid() error {
	if r.forks < 1 {
		return usage("--forks must be at least 1, not %d", r.forks)
	}
	if err := oneOf("--output", r.output.format, ui.Formats()...); err != nil {
		return err
	}
	return r.connect.valid()
}

func connections() []string { return []string{"ssh", "local", "smart"} }

// named treats the value of -c as a connection if it is the name of one: -c of ansible-playbook has only this
// meaning. It returns the remaining values, which are configs. A config file with such a name is written as
// ./local.
func (c *connectFlags) named(configs []string) []string {
	var files []string
	for _, word := range configs {
		if slices.Contains(connections(), word) {
			c.connection = word
		} else {
			files = append(files, word)
		}
	}
	return files
}

// valid rejects values that are not known for connections.
func (c *connectFlags) valid() error {
	if c.timeout < 0 {
		return usage("--timeout must not be negative, got %d", c.timeout)
	}
	for _, f := range []struct {
		flag, value string
		words       []string
	}{
		{"--connection", c.connection, connections()},
		{"--become-method", c.becomeMethod, []string{"sudo", "su"}},
		{"--ssh-host-key", c.hostKey, []string{string(ssh.Strict), string(ssh.AcceptNew), string(ssh.Insecure)}},
	} {
		if f.value == "" {
			continue
		}
		if err := oneOf(f.flag, f.value, f.words...); err != nil {
			return err
		}
	}
	return nil
}

func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return usage("%s: unknown value %q: use one of %s", flag, value, strings.Join(words, ", "))
}
