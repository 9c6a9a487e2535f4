package cli

import (
	"github.com/spf13/cobra"

	"kubekey/pkg/expr"
)

// What follows is for the manual, which is generated from what the program is
// made of.

// Commands is the tree of kk's commands. They are to be read, not to be run.
func Commands() *cobra.Command { return (&app{}).root() }

// Expressions knows all filters, tests, lookups and functions.
func Expressions() *expr.Env { return expr.New(expr.Options{}, Libraries()...) }
