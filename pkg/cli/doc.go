package cli

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
)

func (a *app) docCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doc [MODULE|KEYWORD]",
		Short: "Show the documentation of a module or keyword; without a name, list all",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			reg, err := Modules()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.docList(reg)
			}
			return a.doc(reg, args[0])
		},
	}
}

func (a *app) docList(reg *module.Registry) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "Modules:")
	for _, s := range reg.Specs() {
		fmt.Fprintf(w, "  %s\t%s\n", s.Name, s.Summary)
	}
	fmt.Fprintln(w, "\nKeywords:")
	for _, k := range playbook.Keywords() {
		fmt.Fprintf(w, "  %s\t%s\n", k.Name, k.Doc)
	}
	return w.Flush()
}

func (a *app) doc(reg *module.Registry, name string) error {
	found := false
	if s := reg.Find(name); s != nil {
		found = true
		if err := moduleText(a.Out, s); err != nil {
			return err
		}
	}
	for _, k := range playbook.Keywords() {
		if k.Name == name {
			found = true
			fmt.Fprintf(a.Out, "keyword %s (%s), on %s\n\n  %s\n", k.Name, k.Type, k.On, k.Doc)
			if k.Inherited {
				fmt.Fprintln(a.Out, "  Children inherit it.")
			}
		}
	}
	if found {
		return nil
	}
	names := reg.Names()
	for _, k := range playbook.Keywords() {
		names = append(names, k.Name)
	}
	return &exitError{engine.ExitError, source.Errorf(source.Pos{}, "unknown module or keyword %q", name).
		WithHelp("%s", source.DidYouMean(name, names))}
}

// moduleText writes the documentation of a module for a terminal.
func moduleText(w io.Writer, s *module.Spec) error {
	fmt.Fprintf(w, "module %s: %s\n", s.Name, s.Summary)
	if len(s.Aliases) > 0 {
		fmt.Fprintf(w, "aliases: %s\n", strings.Join(s.Aliases, ", "))
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
	if s.New != nil {
		args, err := schema.Describe(s.New())
		if err != nil {
			return err
		}
		if len(args) > 0 {
			fmt.Fprintln(w, "\nArguments:")
		}
		writeArgs(w, args, "  ")
		rules, err := schema.DescribeRules(s.New())
		if err != nil {
			return err
		}
		if len(rules) > 0 {
			fmt.Fprintln(w, "\nRules:")
		}
		for _, r := range rules {
			fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(r, "`", ""))
		}
	}
	if len(s.Returns) > 0 {
		fmt.Fprintln(w, "\nReturns:")
		for _, r := range s.Returns {
			fmt.Fprintf(w, "  %s (%s): %s\n", r.Key, r.Type, r.Doc)
		}
	}
	if len(s.Examples) > 0 {
		fmt.Fprintln(w, "\nExamples:")
		for _, e := range s.Examples {
			fmt.Fprintf(w, "%s\n", indent(strings.TrimRight(e, "\n"), "  "))
		}
	}
	return nil
}

func writeArgs(w io.Writer, args []schema.Arg, pad string) {
	sort.SliceStable(args, func(i, j int) bool { return args[i].Required && !args[j].Required })
	for _, a := range args {
		fmt.Fprintf(w, "%s%s (%s)%s\n%s    %s\n", pad, a.Name, a.Type, traits(a), pad, a.Doc)
		writeArgs(w, a.Options, pad+"    ")
	}
}

func traits(a schema.Arg) string {
	var out []string
	if a.Required {
		out = append(out, "required")
	}
	if a.Default != "" {
		out = append(out, "default "+a.Default)
	}
	if len(a.Choices) > 0 {
		out = append(out, "one of "+strings.Join(a.Choices, ", "))
	}
	if len(a.Aliases) > 0 {
		out = append(out, "also "+strings.Join(a.Aliases, ", "))
	}
	if len(out) == 0 {
		return ""
	}
	return "; " + strings.Join(out, "; ")
}

func indent(text, pad string) string {
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
}
