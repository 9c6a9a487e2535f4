package account

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
)

// accounts pretends that the user and the group "ann" are there, in "red" too.
const accounts = `case "$*" in
"passwd ann") echo "ann:x:4200:4200:Ann:/nonexistent:/bin/sh" ;;
"group ann" | "group 4200") echo "ann:x:4200:" ;;
"group red") echo "red:x:5:ann" ;;
"group blue") echo "blue:x:6:" ;;
group) printf 'ann:x:4200:\nred:x:5:ann\nblue:x:6:\n' ;;
*) exit 2 ;;
esac`

func userHost(t *testing.T) *moduletest.StandIns {
	return moduletest.NewStandIns(t, map[string]string{
		"getent": accounts, "useradd": "", "usermod": "", "userdel": "", "groupadd": "", "groupmod": "", "groupdel": "",
		"chpasswd": `cat >"${0%/*}/../secret"`,
	})
}

// acted is the calls that were not questions.
func acted(h *moduletest.StandIns) string {
	var out []string
	for _, line := range strings.Split(h.Calls(), "\n") {
		if !strings.HasPrefix(line, "getent") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func TestUserCommands(t *testing.T) {
	for _, c := range []struct {
		args []any
		call string
	}{
		{[]any{"name", "ann", "create_home", false}, ""},
		{[]any{"name", "ann", "create_home", false, "groups", "red", "uid", 4200, "comment", "Ann", "shell", "/bin/sh",
			"group", "ann"}, ""},
		{[]any{"name", "ann", "create_home", false, "groups", "blue"}, "usermod -G blue ann"},
		{[]any{"name", "ann", "create_home", false, "groups", "blue,red", "append", true}, "usermod -a -G blue ann"},
		{[]any{"name", "ann", "create_home", false, "groups", []any{}}, "usermod -G  ann"},
		{[]any{"name", "ann", "create_home", false, "uid", 1, "non_unique", true, "group", "red", "comment", "B C", "home",
			"/h", "move_home", true, "shell", "/s"},
			"usermod -u 1 -o -g 5 -c B C -d /h -m -s /s ann"},
		{[]any{"name", "new", "system", true, "uid", 7, "groups", "red,blue", "umask", "077", "skeleton", "/k", "expires",
			86400}, "useradd -u 7 -G red,blue -e 1970-01-02 -r -K UMASK=077 -m -k /k new"},
		{[]any{"name", "ann", "state", "absent", "remove", true, "force", true}, "userdel -f -r ann"},
		{[]any{"name", "new", "state", "absent"}, ""},
	} {
		h := userHost(t)
		o := moduletest.Options{Conn: h, Diff: true}
		dry := o
		dry.Check = true
		if r := run(t, "user", dry, c.args...); r.Changed != (c.call != "") || acted(h) != "" {
			t.Errorf("%v in check mode: %+v", c.args, r)
		}
		r := run(t, "user", o, c.args...)
		if call := acted(h); r.Changed != (c.call != "") || call != c.call {
			t.Errorf("%v ran %q, want %q", c.args, call, c.call)
		}
	}
}

func TestPasswordTravelsOverStandardInput(t *testing.T) {
	h := userHost(t)
	count := moduletest.Count(h)
	r := run(t, "user", moduletest.Options{Conn: count}, "name", "ann", "create_home", false, "password", "$6$secret")
	if calls := acted(h); !r.Changed || calls != "chpasswd -e" || read(t, h.Dir+"/secret") != "ann:$6$secret\n" {
		t.Errorf("ran %q: %+v", calls, r)
	}
	if lines := count.Lines(); len(lines) != 1 || strings.Contains(lines[0], "secret") &&
		strings.Contains(lines[0], "$6$") {
		t.Errorf("%d commands, or the hash stands in a command line", len(lines))
	}
	run(t, "user", moduletest.Options{Conn: h}, "name", "ann", "create_home", false, "password_lock", true)
	if calls := acted(h); calls != "usermod -L ann" {
		t.Errorf("ran %q", calls)
	}
	for text, args := range map[string][]any{
		"colons":           {"name", "a", "shell", "/b:c"},
		"octal":            {"name", "a", "umask", "x"},
		"expires":          {"name", "a", "expires", 1e15},
		"no groups":        {"name", "a", "append", true},
		"does not exist":   {"name", "ann", "group", "none"},
		"Group none does ": {"name", "ann", "groups", "none"},
	} {
		fails(t, text, "user", moduletest.Options{Conn: h}, args...)
	}
}

func TestAccountsWithBusyboxAlone(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"getent": accounts, "adduser": "", "deluser": "", "addgroup": "",
		"delgroup": ""})
	for _, c := range []struct {
		module string
		args   []any
		call   string
	}{
		{"user", []any{"name", "new", "uid", 7, "group", "red", "groups", "blue", "comment", "N", "shell", "/s", "home", "/h",
			"system", true, "create_home", false}, "adduser -D -u 7 -G red -g N -h /h -s /s -S -H new\naddgroup new blue"},
		{"user", []any{"name", "ann", "groups", "blue", "create_home", false}, "addgroup ann blue\ndelgroup ann red"},
		{"user", []any{"name", "ann", "state", "absent", "remove", true}, "deluser --remove-home ann"},
		{"group", []any{"name", "crew", "gid", 9, "system", true}, "addgroup -S -g 9 crew"},
		{"group", []any{"name", "red", "state", "absent"}, "delgroup red"},
	} {
		r := run(t, c.module, moduletest.Options{Conn: h}, c.args...)
		if call := acted(h); !r.Changed || call != c.call {
			t.Errorf("%v ran %q, want %q", c.args, call, c.call)
		}
	}
	fails(t, "needs usermod", "user", moduletest.Options{Conn: h}, "name", "ann", "shell", "/x")
	fails(t, "needs groupmod", "group", moduletest.Options{Conn: h}, "name", "red", "gid", 6)
	fails(t, "need groupadd", "group", moduletest.Options{Conn: h}, "name", "x", "gid", 6, "non_unique", true)
	fails(t, "need useradd", "user", moduletest.Options{Conn: h}, "name", "x", "expires", 5)
}

func TestWhatIsMissingInCheckModeIsAWarning(t *testing.T) {
	o := moduletest.Options{Conn: moduletest.NewStandIns(t,
		map[string]string{"getent": accounts, "usermod": "", "useradd": ""}), Check: true}
	for _, c := range []struct {
		module  string
		args    []any
		changed bool
	}{
		{"user", []any{"name", "ann", "groups", "none", "create_home", false}, true},
		{"user", []any{"name", "new", "group", "none"}, true},
	} {
		r := run(t, c.module, o, c.args...)
		if r.Failed || r.Changed != c.changed || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "check mode") {
			t.Errorf("%s %v: %+v", c.module, c.args, r)
		}
	}
}
