package module

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/value"
)

// IsForeign reports whether a name is the full name of a module in a collection other than kk's and Ansible's own.
func IsForeign(name string) bool {
	parts := strings.Split(name, ".")
	return len(parts) >= 3 && !slices.Contains(parts, "") && parts[0] != own &&
		!strings.HasPrefix(name, Builtin+".") && !strings.HasPrefix(name, legacy+".")
}

// Missing returns a placeholder for an unknown module. The task may never run; if it does, it fails.
func Missing(name string) *Spec {
	return &Spec{
		Name: name, Summary: "A module that kk does not have.", AnyArgs: true, Where: OnControl, FreeForm: "_raw_params",
		New: func() Runner { return &missing{name: name, Args: value.NewDict()} },
	}
}

type missing struct {
	name string
	Args *value.Dict `kk:",rest"`
}

// Run implements Runner.
func (m *missing) Run(context.Context, *Call) (Result, error) {
	return Result{}, fmt.Errorf("kk has no module %s: couldn't resolve module/action '%s'", m.name, m.name)
}
