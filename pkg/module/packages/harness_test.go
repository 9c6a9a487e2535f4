package packages

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
		"package":           {"name", "x"},
		"apt":               {"name", "x"},
		"dnf":               {"name", "x"},
		"zypper":            {"name", "x"},
		"apk":               {"name", "x"},
		"package_facts":     {},
		"apt_repository":    {"repo", "deb http://x y z"},
		"apt_key":           {"id", "12345678", "state", "absent"},
		"deb822_repository": {"name", "x", "state", "absent"},
		"yum_repository":    {"name", "x", "state", "absent"},
		"rpm_key":           {"key", "12345678", "state", "absent"},
		"debconf":           {"name", "x"},
		"pip":               {"name", "x"},
		"dpkg_selections":   {"name", "x", "selection", "hold"},
	} {
		if _, err := moduletest.Try(t, spec(t, name), value.NewDict(args...), o); err == nil ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
