package posix

import (
	"os"
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

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUnreachableHost(t *testing.T) {
	o := moduletest.Options{Conn: moduletest.Unreachable{}}
	for name, args := range map[string][]any{
		"authorized_key": {"user", "x", "key", "http://192.0.2.1/x"},
		"seboolean":      {"name", "x", "state", true},
		"selinux":        {"state", "disabled"},
	} {
		if _, err := moduletest.Try(t, spec(t, name), value.NewDict(args...), o); err == nil ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
