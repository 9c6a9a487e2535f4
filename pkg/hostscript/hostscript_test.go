package hostscript

import (
	"context"
	"os"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/redact"
)

func run(t *testing.T, s *Script, check bool) (Answer, error) {
	t.Helper()
	conn := connector.Connector(local.New())
	if check {
		conn = connector.ReadOnly(conn)
	}
	return s.Run(context.Background(), conn, check)
}

func TestParametersArriveAsTheyAre(t *testing.T) {
	odd := "a'b \"c\" $HOME `id` \\ ;&|*\n=x"
	seven := 7
	s := New(`say got "$p_odd"; for w; do say word "$w"; done
		say rest "$p_on$p_off$p_yes$p_no_yes$p_n$p_none$SECRET$(cat)"`)
	s.Set("odd", odd).Flag("on", true).Flag("off", false).Flag("yes", true).Number("n", &seven).Number("none", nil)
	s.Words, s.Env, s.Stdin = []string{odd, "", "--"}, map[string]string{"SECRET": "s"}, strings.NewReader("in")
	a, err := run(t, s, false)
	if err != nil || a.Get("got") != odd || strings.Join(a["word"], "|") != odd+"||--" || a.Get("rest") != "117sin" {
		t.Errorf("got %q, %v", a, err)
	}
}

type arguments struct {
	Name     string        `kk:"name,required,alias=other"`
	Force    bool          `kk:"force"`
	Backup   bool          `kk:"backup"`
	Enabled  *bool         `kk:"enabled"`
	Count    int           `kk:"count"`
	Nice     *int          `kk:"nice"`
	Lines    []string      `kk:"lines"`
	Password redact.Secret `kk:"password"`
	More
}

type More struct {
	Timeout float64 `kk:"timeout"`
	URL     string  `kk:"url,private"`
}

func TestArgumentsAreParameters(t *testing.T) {
	no, set := false, new(redact.Set)
	m := &arguments{Name: "a 'b'\n", Force: true, Enabled: &no, Lines: []string{"x y", "$z"}, Password: set.Secret("pw1")}
	m.More = More{Timeout: 1.5, URL: "https://u:pw2@host/"}
	s := New(`set | sed -n 's/^p_\([a-z_]*\)=.*/\1/p' | sort | tr '\n' ' ' >"$p_path"
		say names "$(cat "$p_path")"
		say all "$p_name|$p_force|$p_enabled$p_no_enabled|$p_count|$p_lines|$p_timeout|$p_password$p_url"`)
	a, err := run(t, s.Set("path", t.TempDir()+"/f").Args(m), false)
	if err != nil || a.Get("all") != "a 'b'\n|1|1|0|x y\n$z|1.5|" {
		t.Errorf("got %q, %v", a, err)
	}
	if a.Get("names") != "count force lines name no_enabled path timeout " {
		t.Errorf("set are %s", a.Get("names"))
	}
	if params := strings.Join(s.params, " "); strings.Contains(params, "pw1") || strings.Contains(params, "pw2") {
		t.Errorf("secrets in the command line: %s", params)
	}
	a, err = run(t, New(`say name "$p_name"`).Args(m).Set("name", "new"), false)
	if err != nil || a.Get("name") != "new" {
		t.Errorf("a parameter that is set later: %q, %v", a, err)
	}
	if _, err := run(t, New(`say name "$p_name"`).Args(*m), false); err == nil {
		t.Error("arguments that are not a pointer to a struct are accepted")
	}
}

func BenchmarkArgs(b *testing.B) {
	m := &arguments{Name: "name", Lines: []string{"a", "b"}}
	for b.Loop() {
		New("").Args(m)
	}
}

func TestStepsOnlyCountInCheckMode(t *testing.T) {
	p := t.TempDir() + "/f"
	s := New(`step "make it" touch "$p_path"`).Set("path", p)
	for _, check := range []bool{true, false} {
		a, err := run(t, s, check)
		if err != nil || !a.Changed() {
			t.Errorf("check %v: %q, %v", check, a, err)
		}
		if _, err := os.Stat(p); os.IsNotExist(err) != check {
			t.Errorf("check %v: %v", check, err)
		}
	}
}

func TestFailures(t *testing.T) {
	for code, text := range map[string]string{
		`fail "no way"; echo never`:              "no way",
		`step "try it" sh -c 'echo why; exit 3'`: "try it: why",
		`need no-such-program`:                   `Failed to find required executable "no-such-program"`,
		`echo why >&2; exit 3`:                   "exited with status 3: why",
		`printf 'a=b'; exit 0`:                   "exited with status 0",
		`kill -KILL $$`:                          "exited with status 137",
	} {
		if _, err := run(t, New(code), false); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", code, err)
		}
	}
}
