package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandPages returns a page per command, and their index.
func commandPages(root *cobra.Command) pages {
	p := pages{}
	all := below(root)
	for _, c := range all {
		p["cli/"+pageOf(c)] = commandPage(c)
	}
	d := newDocument("Commands")
	d.text(plain(root.Short) + ".")
	d.table([]string{"command", "what it does"}, indexRows(all))
	d.text("`kk completion SHELL` prints a completion script for bash, zsh, fish or PowerShell; `kk COMMAND --help` " +
		"explains a command.")
	d.text("Exit codes: 0 success, 1 error, 2 a host failed, 4 invalid input or a host unreachable, 5 invalid usage, " +
		"99 interrupted.")
	p["cli/README.md"] = d.String()
	return p
}

func pageOf(c *cobra.Command) string {
	return strings.ReplaceAll(c.CommandPath(), " ", "-") + ".md"
}

func indexRows(commands []*cobra.Command) [][]string {
	var rows [][]string
	for _, c := range commands {
		rows = append(rows, []string{fmt.Sprintf("[%s](%s)", c.CommandPath(), pageOf(c)), plain(c.Short)})
	}
	return rows
}

// below lists the commands below one, each before its subcommands.
func below(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.Hidden {
			continue
		}
		out = append(append(out, sub), below(sub)...)
	}
	return out
}

func commandPage(c *cobra.Command) string {
	d := newDocument(c.CommandPath())
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	d.text(plain(long))
	if !c.HasSubCommands() {
		d.code("", c.UseLine())
	}
	if c.Example != "" {
		d.code("", c.Example)
	}
	if rows := indexRows(c.Commands()); len(rows) > 0 {
		d.table([]string{"command", "what it does"}, rows)
	}
	if rows := flagRows(c.NonInheritedFlags()); len(rows) > 0 {
		d.text("## Flags")
		d.table([]string{"flag", "value", "default", "meaning"}, rows)
	}
	return d.String()
}

func flagRows(flags *pflag.FlagSet) [][]string {
	var rows [][]string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := quoted("--" + f.Name)
		if f.Shorthand != "" {
			name = quoted("-"+f.Shorthand) + ", " + name
		}
		rows = append(rows, []string{name, flagValue(f), flagDefault(f), sentence(plain(f.Usage))})
	})
	return rows
}

func flagValue(f *pflag.Flag) string {
	switch t := f.Value.Type(); t {
	case "bool":
		return ""
	case "count":
		return "may be repeated"
	case "stringArray":
		return "text"
	case "stringSlice":
		return "list, with commas"
	case "string":
		return "text"
	default:
		return t
	}
}

// flagDefault returns the default of a flag. It is empty for the zero value, which means that the flag is not set.
func flagDefault(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "false", "[]":
		return ""
	}
	return quoted(f.DefValue)
}
