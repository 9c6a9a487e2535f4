package general

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestPAMD(t *testing.T) {
	const service = "# rules\nauth       sufficient pam_rootok.so\n\n# the rest\nauth required   pam_faillock.so preauth silent deny=3\n@include common-auth\nsession [success=1  default=ignore] pam_succeed_if.so quiet [a b] uid=0\n-session optional pam_systemd.so\n"
	rootok := []any{"type", "auth", "control", "sufficient", "module_path", "pam_rootok.so"}
	faillock := []any{"type", "auth", "control", "required", "module_path", "pam_faillock.so"}
	succeed := []any{"type", "session", "control", "[success=1 default=ignore]", "module_path", "pam_succeed_if.so"}
	wheel := []any{"new_type", "auth", "new_control", "required", "new_module_path", "pam_wheel.so"}
	for _, c := range []struct {
		name     string
		old, new string // the line before and after; "" and "" for no change
		args     [][]any
	}{
		{"absent", "auth required   pam_faillock.so preauth silent deny=3\n", "", [][]any{faillock, {"state", "absent"}}},
		{"absent with a dash", "-session optional pam_systemd.so\n", "",
			[][]any{{"type", "-session", "control", "optional", "module_path", "pam_systemd.so", "state", "absent"}}},
		{"no such rule", "", "", [][]any{{"type", "session", "control", "optional", "module_path", "pam_systemd.so", "state",
			"absent"}}},
		{"control", "auth required   pam_faillock.so preauth silent deny=3",
			"auth       [success=2 default=ignore] pam_faillock.so preauth silent deny=3",
			[][]any{faillock, {"new_control", "[success = 2  default=ignore]"}}},
		{"as it is", "", "", [][]any{faillock, {"new_control", "required", "module_arguments", "preauth silent deny=3"}}},
		{"type and module", "auth required   pam_faillock.so preauth", "-auth      required pam_x.so preauth",
			[][]any{faillock, {"new_type", "-auth", "new_module_path", "pam_x.so"}}},
		{"other arguments", "auth required   pam_faillock.so preauth silent deny=3",
			"auth       required pam_faillock.so deny=5 [x y]",
			[][]any{faillock, {"module_arguments", []any{"deny=5", "[x y]"}}}},
		{"no arguments", "auth required   pam_faillock.so preauth silent deny=3", "auth       required pam_faillock.so",
			[][]any{faillock, {"module_arguments", ""}}},
		{"after", "pam_rootok.so\n", "pam_rootok.so\nauth       required pam_wheel.so use_uid\n",
			[][]any{rootok, wheel, {"state", "after", "module_arguments", "use_uid"}}},
		{"before", "# the rest\n", "# the rest\nauth       required pam_wheel.so\n",
			[][]any{faillock, wheel, {"state", "before"}}},
		{"before the first", "# rules\n", "# rules\nauth       required pam_wheel.so\n",
			[][]any{rootok, wheel, {"state", "before"}}},
		{"after the last", "pam_systemd.so\n", "pam_systemd.so\nauth       required pam_wheel.so\n",
			[][]any{{"type", "-session", "control", "optional", "module_path", "pam_systemd.so", "state", "after"}, wheel}},
		{"is before already", "", "", [][]any{faillock,
			{"state", "before", "new_type", "auth", "new_control", "sufficient", "new_module_path", "pam_rootok.so"}}},
		{"add arguments", "session [success=1  default=ignore] pam_succeed_if.so quiet [a b] uid=0",
			"session    [success=1 default=ignore] pam_succeed_if.so quiet [a b] uid=7 crond",
			[][]any{succeed, {"state", "args_present", "module_arguments", "crond,quiet,uid=7"}}},
		{"take arguments", "session [success=1  default=ignore] pam_succeed_if.so quiet [a b] uid=0",
			"session    [success=1 default=ignore] pam_succeed_if.so [a b] uid=0",
			[][]any{succeed, {"state", "args_absent", "module_arguments", []any{"quiet", "uid=1"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "su")
			if err := os.WriteFile(file, []byte(service), 0o640); err != nil {
				t.Fatal(err)
			}
			args := []any{"name", "su", "path", dir}
			for _, more := range c.args {
				args = append(args, more...)
			}
			want := strings.Replace(service, c.old, c.new, 1)
			if want == service {
				if r := run(t, "pamd", moduletest.Options{}, args...); r.Changed ||
					value.Repr(moduletest.Field(r, "change_count")) != "0" {
					t.Errorf("changed: %+v", r)
				}
			} else {
				first, _ := moduletest.RunTwice(t, spec(t, "pamd"), value.NewDict(append(args, "backup", true)...),
					moduletest.Options{Diff: true})
				if got := value.Repr(moduletest.Field(first, "change_count")); got != "1" && c.name != "absent" {
					t.Errorf("change_count is %s", got)
				}
				if kept := value.Str(moduletest.Field(first, "backupdest")); kept == "" || read(t, kept) != service {
					t.Errorf("backupdest is %q", kept)
				}
			}
			if got := read(t, file); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("got %v, %v", info, err)
			}
		})
	}
	o := moduletest.Options{}
	for text, more := range map[string][]any{
		"missing: new_control, new_type, new_module_path": {"state", "after"},
		"missing: module_arguments":                       {"state", "args_absent"},
		"Please use 'updated'":                            {"state", "args_present", "module_arguments", []any{"[a b]"}},
		"Rule control, must, is not valid":                {"new_control", "must"},
		"Rule control action, success=go, is not valid":   {"new_control", "[success=go]"},
		"must be one line":                                {"new_module_path", "a\nb"},
		"Unable to open/read PAM module file":             {},
	} {
		fails(t, text, "pamd", o, append(append([]any{"name", "none", "path", t.TempDir()}, rootok...), more...)...)
	}
}
