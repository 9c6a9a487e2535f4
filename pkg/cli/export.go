package cli

import (
	"github.com/spf13/cobra"

	"kubekey/pkg/expr"
)

// The following functions serve the documentation generator.

// Commands returns the tree of kk's commands. It is for inspection only: the commands must not be run.
func Commands() *cobra.Command { return (&app{}).root() }

// Expressions returns an environment with all filters, tests, lookups and functions.
func Expressions() *expr.Env { return expr.New(expr.Options{}, Libraries()...) }
