package cli

import (
	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func (a *app) varsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "vars", Short: "Inspect variables"}
	in := &viewFlags{}
	explain := &cobra.Command{
		Use:   "explain HOST NAME",
		Short: "Show where a host's variable comes from, and what it overrides",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("specify a host and a variable: kk vars explain node1 http_port -i inventory.yaml")
			}
			return a.explain(cmd, in, args[0], args[1])
		},
	}
	in.flags(explain.Flags())
	cmd.AddCommand(explain)
	return cmd
}

func (a *app) explain(cmd *cobra.Command, in *viewFlags, host, name string) error {
	s, dir, err := a.openView(cmd.Context(), in)
	if err != nil {
		return err
	}
	v, err := a.hostView(cmd.Context(), s, host, dir)
	if err != nil {
		return err
	}
	origins := v.Explain(name)
	if len(origins) == 0 {
		return &exitError{engine.ExitError, source.Errorf(source.Pos{}, "host %s has no variable %q", host, name).
			WithHelp("%s", source.DidYouMean(name, v.Names()))}
	}
	val, _, err := v.Lookup(name)
	if err == nil {
		val, err = value.Force(val)
	}
	switch u, undefined := val.(*value.Undefined); {
	case err != nil:
		a.row("%s cannot be evaluated: %s", name, a.secret.Text(err.Error()))
	case undefined:
		a.row("%s cannot be evaluated: %s", name, a.secret.Text(u.Error()))
	default:
		a.row("%s = %s", name, a.shown(name, val))
	}
	seen := map[string]bool{} // the inventory and the playbook can be in the same folder
	for _, o := range origins {
		if at := o.Layer + o.At.String(); o.At.IsValid() && seen[at] {
			continue
		} else {
			seen[at] = true
		}
		mark := "overridden"
		if o.Wins {
			mark = "used"
		}
		at := o.At.String()
		if at != "" {
			at = " (" + at + ")"
		}
		a.row("  %-10s %s%s: %s", mark, o.Layer, at, a.shown(name, o.Raw))
	}
	return nil
}

// shown returns a value for display. It is masked when its name is that of a secret.
func (a *app) shown(name string, v any) string {
	if forced, err := value.Force(v); err == nil {
		v = forced
	}
	if _, isText := v.(string); isText && redact.IsSecretName(name) {
		return redact.Mask
	}
	v = masked(name, v)
	text, err := value.JSON(v, value.JSONOptions{})
	if err != nil {
		return value.Repr(v)
	}
	return a.secret.Text(text)
}
