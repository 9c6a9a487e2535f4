package general

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// apache is a host whose server loads the modules in a folder. a2enmod does not know the module bad. broken is an
// error in the server's configuration.
func apache(t *testing.T, broken string) *moduletest.StandIns {
	dir := t.TempDir()
	if broken != "" {
		if err := os.WriteFile(filepath.Join(dir, "broken"), []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return moduletest.NewStandIns(t, map[string]string{
		"apache2ctl": `cd ` + dir + `
case $1 in
-V) echo "  threaded:     yes (fixed thread count)" ;;
*)
	[ ! -e broken ] || { cat broken >&2; exit 1; }
	echo "Loaded Modules:"; echo " core_module (static)"
	for m in *; do [ "$m" = '*' ] || printf ' %s_module (shared)\n' "$m"; done
esac`,
		"a2enmod":  `[ "$1" != bad ] || { echo "ERROR: Module bad does not exist!"; exit 1; }; : >` + dir + `/$1`,
		"a2dismod": `[ "$1" != -f ] || shift; rm ` + dir + `/$1`,
	})
}

func TestApacheModule(t *testing.T) {
	h := apache(t, "")
	enable, disable := value.NewDict("name", "rewrite"), value.NewDict("name", "rewrite", "state", "absent", "force", true)
	first, second := moduletest.RunTwice(t, spec(t, "apache2_module"), enable, moduletest.Options{Conn: h})
	for _, r := range []any{moduletest.Field(first, "result"), moduletest.Field(second, "result")} {
		if r != "Module rewrite enabled" {
			t.Errorf("got %v", r)
		}
	}
	moduletest.RunTwice(t, spec(t, "apache2_module"), disable, moduletest.Options{Conn: h})
	if calls := h.Calls(); !strings.Contains(calls, "a2enmod rewrite") || !strings.Contains(calls, "a2dismod -f rewrite") {
		t.Errorf("called %s", calls)
	}
	fails(t, "Your MPM seems to be threaded", "apache2_module", moduletest.Options{Conn: h}, "name", "cgi")
	fails(t, `must be the name of a module, got "-f"`, "apache2_module", moduletest.Options{Conn: h}, "name", "-f")
	r := run(t, "apache2_module", moduletest.Options{Conn: h}, "name", "bad")
	if out := moduletest.Field(r, "stdout"); !r.Failed || r.Changed || out != "ERROR: Module bad does not exist!\n" ||
		moduletest.Field(r, "rc") != 1 ||
		!strings.Contains(r.Msg, "Failed to set module bad to enabled") || !strings.Contains(r.Msg, "(bad_module)") {
		t.Errorf("got %+v", r)
	}
}

func TestApacheConfigurationWithErrors(t *testing.T) {
	for _, tt := range []struct{ said, name, warning string }{
		{"AH00526: Syntax error", "rewrite", "AH00526"}, {"AH00534: No MPM loaded", "mpm_event", "No MPM module loaded!"},
	} {
		h := apache(t, tt.said)
		fails(t, tt.said, "apache2_module", moduletest.Options{Conn: h}, "name", tt.name)
		r := run(t, "apache2_module", moduletest.Options{Conn: h, Check: true}, "name", tt.name, "ignore_configcheck", true)
		if !r.Changed || !strings.Contains(strings.Join(r.Warnings, ""), tt.warning) {
			t.Errorf("%s: got %+v", tt.said, r)
		}
	}
}

func TestNoApache(t *testing.T) {
	h := moduletest.NewStandIns(t, nil)
	fails(t, "Neither of apache2ctl nor apachectl found", "apache2_module", moduletest.Options{Conn: h}, "name", "ssl")
	for state, changed := range map[string]bool{"present": true, "absent": false} {
		r := run(t, "apache2_module", moduletest.Options{Conn: h, Check: true}, "name", "ssl", "state", state)
		if r.Changed != changed || len(r.Warnings) != 1 {
			t.Errorf("%s: got %+v", state, r)
		}
	}
}

func TestApacheIdentifier(t *testing.T) {
	for name, want := range map[string]string{"ssl": "ssl_module", "php7.4": "php7_module", "evasive": "evasive20_module",
		"shib2": "mod_shib"} {
		if got := apacheIdentifier(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
