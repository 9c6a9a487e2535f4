package hostscript

import (
	"context"
	"os"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
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
	yes, seven := true, 7
	s := New(`say got "$p_odd"; for w; do say word "$w"; done; say rest "$p_on$p_off$p_yes$p_no_yes$p_n$p_none$SECRET$(cat)"`)
	s.Set("odd", odd).Flag("on", true).Flag("off", false).Choice("yes", &yes).Number("n", &seven).Number("none", nil)
	s.Words, s.Env, s.Stdin = []string{odd, "", "--"}, map[string]string{"SECRET": "s"}, strings.NewReader("in")
	a, err := run(t, s, false)
	if err != nil || a.Get("got") != odd || strings.Join(a["word"], "|") != odd+"||--" || a.Get("rest") != "117sin" {
		t.Errorf("got %q, %v", a, err)
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
		`echo why >&2; exit 3`:                   "ended with status 3: why",
		`printf 'a=b'; exit 0`:                   "ended with status 0",
		`kill -KILL $$`:                          "ended with status 137",
	} {
		if _, err := run(t, New(code), false); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", code, err)
		}
	}
}
