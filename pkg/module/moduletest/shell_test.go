package moduletest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestShellOf(t *testing.T) {
	var out bytes.Buffer
	_, err := moduletest.ShellOf("bash", "-e").Run(context.Background(), connector.Command{
		Line: `cat; echo "$X"; [ -z "$BASH_VERSION" ] || echo bash`, Env: map[string]string{"X": "a b"},
		Stdin: strings.NewReader("in\n"), Stdout: &out,
	})
	if err != nil || out.String() != "in\na b\nbash\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// toucher makes a file, or sees that it is there.
type toucher struct {
	Path string `kk:"path,required"`
}

func (m *toucher) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	exit, err := c.Conn.Run(ctx, connector.Command{Line: "[ -e " + m.Path + " ]", Probe: true})
	if err != nil || exit.Code == 0 || c.Check {
		return module.Result{Changed: exit.Code != 0}, err
	}
	_, err = c.Conn.Run(ctx, connector.Command{Line: "touch " + m.Path})
	return module.Result{Changed: true}, err
}

func TestRunTwice(t *testing.T) {
	specs := []module.Spec{{Name: "touch", New: func() module.Runner { return &toucher{} }}}
	spec := moduletest.Find(t, specs, "touch")
	count := moduletest.Count(nil)
	moduletest.RunTwice(t, spec, value.NewDict("path", t.TempDir()+"/f"), moduletest.Options{Conn: count})
	if got := len(count.Lines()); got != 5 {
		t.Errorf("counted %d commands, want 5", got)
	}
	_, err := moduletest.Try(t, spec, value.NewDict("paht", "x"), moduletest.Options{})
	if err == nil || !strings.Contains(err.Error(), `did you mean "path"?`) {
		t.Errorf("got %v", err)
	}
	_, err = moduletest.Try(t, spec, value.NewDict("path", "x"), moduletest.Options{Conn: moduletest.Unreachable{}})
	var lost *connector.UnreachableError
	if !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
}

// reader reads a file of the control node.
type reader struct {
	Name string `kk:"name"`
}

func (m *reader) Run(_ context.Context, c *module.Call) (module.Result, error) {
	p, err := c.Find("files", m.Name)
	if err != nil {
		return module.Result{}, err
	}
	text, err := c.Files.ReadFile(p)
	return module.Result{Msg: string(text) + c.Host + c.Now().Format("2006")}, err
}

func TestFindAndDefaults(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a", []byte("text "), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := module.Spec{Name: "read", New: func() module.Runner { return &reader{} }, Check: module.Skips,
		CheckSkipMsg: "no"}
	o := moduletest.Options{Dir: dir, Host: "web1 ", WorkDir: dir, Context: context.Background(),
		Now: func() time.Time { return time.Unix(0, 0) }}
	if r := moduletest.Run(t, spec, value.NewDict("name", "a"), o); r.Msg != "text web1 1970" {
		t.Errorf("got %+v", r)
	}
	if _, err := moduletest.Try(t, spec, value.NewDict("name", "b"), o); err == nil ||
		!strings.Contains(err.Error(), "Searched in:") {
		t.Errorf("got %v", err)
	}
	o.Check = true
	if r := moduletest.Run(t, spec, value.NewDict("name", "a"), o); !r.Skipped || r.Msg != "no" {
		t.Errorf("got %+v", r)
	}
}
