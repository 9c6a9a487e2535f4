package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// oddNames are file names that break scripts without correct quoting.
var oddNames = []string{
	"plain", "with space", "it's", `say "hi"`, "new\nline", "-rf", "ümläut-日本", "$HOME", "`id`", "a;b&c|d", "*",
	`back\slash`, "trailing ", "%s%d",
}

// shells runs a test with the shell of this machine, and with only busybox.
func shells(t *testing.T, test func(t *testing.T, conn connector.Connector)) {
	t.Run("local", func(t *testing.T) { test(t, local.New()) })
	t.Run("busybox", func(t *testing.T) { test(t, busybox(t)) })
}

// busybox returns a connector to this machine that only provides busybox.
func busybox(t *testing.T) connector.Connector {
	t.Helper()
	bin, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed (package busybox-static)")
	}
	dir := t.TempDir()
	list, err := exec.Command(bin, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(list)) {
		if err := os.Symlink(bin, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return &onlyBusybox{moduletest.ShellOf(filepath.Join(dir, "sh")), dir}
}

type onlyBusybox struct {
	connector.Connector
	dir string
}

// Run makes /bin/sh in scripts refer to busybox, too.
func (b *onlyBusybox) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = "PATH=" + b.dir + "; export PATH; " + strings.ReplaceAll(c.Line, "/bin/sh", b.dir+"/sh")
	return b.Connector.Run(ctx, c)
}

type editCase moduletest.EditCase

func spec(t *testing.T, name string) module.Spec { return moduletest.Find(t, Modules(), name) }

func args(pairs ...any) *value.Dict { return value.NewDict(pairs...) }

func write(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func modeOf(t *testing.T, name string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func get(t *testing.T, r module.Result, key string) any {
	t.Helper()
	if !r.Data.Has(key) {
		t.Errorf("the result has no %s: %s", key, value.Repr(r.Data))
	}
	return moduletest.Field(r, key)
}

// noLeftovers checks that no temporary file was left in a folder.
func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".kk-") {
			t.Errorf("%s was left behind", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Run sets HOME and KK_SUB.
func (h *withHome) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = "HOME=" + h.home + ` KK_SUB="it's"; export HOME KK_SUB; ` + c.Line
	return h.Connector.Run(ctx, c)
}

// asNobody runs commands of this machine as the user nobody.
type asNobody struct{}

func (asNobody) Close() error { return nil }

func (asNobody) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.Line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return connector.Exit{Code: exit.ExitCode()}, nil
	}
	return connector.Exit{}, err
}
