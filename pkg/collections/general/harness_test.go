package general

import (
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

type editCase moduletest.EditCase

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
		"alternatives":   {"name", "x", "path", "/x"},
		"apache2_module": {"name", "x"},
		"locale_gen":     {"name", "x"},
		"npm":            {"name", "x", "global", true},
		"pam_limits":     {"domain", "x", "limit_type", "-", "limit_item", "nofile", "value", 1},
		"pamd":           {"name", "x", "type", "auth", "control", "required", "module_path", "x.so"},
		"ssh_config":     {"host", "x"},
		"sudoers":        {"name", "x", "state", "absent"},
	} {
		if _, err := moduletest.Try(t, spec(t, name), value.NewDict(args...), o); err == nil ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
