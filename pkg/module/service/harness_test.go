package service

import (
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func spec(t *testing.T, name string) module.Spec { return moduletest.Find(t, Modules(), name) }

func run(t *testing.T, name string, o moduletest.Options, pairs ...any) module.Result {
	t.Helper()
	return moduletest.Run(t, spec(t, name), value.NewDict(pairs...), o)
}

func fails(t *testing.T, text, name string, o moduletest.Options, pairs ...any) {
	t.Helper()
	moduletest.Fails(t, text, spec(t, name), value.NewDict(pairs...), o)
}

func TestUnreachableHost(t *testing.T) {
	o := moduletest.Options{Conn: moduletest.Unreachable{}}
	for name, args := range map[string][]any{
		"systemd":       {"name", "x", "state", "started"},
		"service":       {"name", "x"},
		"service_facts": {},
		"sysvinit":      {"name", "x", "enabled", true},
	} {
		if _, err := moduletest.Try(t, spec(t, name), value.NewDict(args...), o); err == nil ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
