package cli

import (
	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/facts"
)

func (a *app) factsCommand() *cobra.Command {
	in := &inputs{}
	conn := &connectFlags{}
	var subset, filter []string
	cmd := &cobra.Command{
		Use:   "facts HOST",
		Short: "Gather and print the facts of a host",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("specify one host: kk facts node1 -i inventory.yaml")
			}
			in.configs = conn.named(in.configs)
			if err := conn.valid(); err != nil {
				return err
			}
			ctx := cmd.Context()
			s, err := a.open(ctx, in)
			if err != nil {
				return err
			}
			v, err := a.hostView(ctx, s, args[0], here)
			if err != nil {
				return err
			}
			defaults, err := a.defaults(ctx, conn)
			if err != nil {
				return err
			}
			e := engine.New(engine.Options{
				Project: a.project(s, nil, nil), Record: a.record(s),
				Reach: engine.Reach{Connect: a.connect(conn), Defaults: defaults},
			})
			c, done, err := e.Connector(ctx, v)
			if err != nil {
				return evalError(err)
			}
			defer done()
			d, err := facts.Gather(ctx, c, facts.Options{Subset: subset, Filter: filter})
			if err != nil {
				return &exitError{engine.ExitUnreachable, err}
			}
			return a.printValue(d)
		},
	}
	in.flags(cmd.Flags())
	conn.flags(cmd.Flags())
	cmd.Flags().StringSliceVar(&subset, "subset", nil,
		"facts to gather: all, min, hardware, network, virtual; !x excludes x")
	cmd.Flags().StringSliceVar(&filter, "filter", nil, "names or globs of facts to print")
	return cmd
}
