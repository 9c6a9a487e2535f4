package script

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"kubekey/builtin"
	"kubekey/pkg/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kk": kk})
}

// kk is what cmd/kk does.
func kk() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, builtin.FS())
	stop()
	os.Exit(code)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home"))
			e.Setenv("KK_WORKDIR", filepath.Join(e.WorkDir, ".kk"))
			e.Setenv("ANSIBLE_ROLES_PATH", filepath.Join(e.WorkDir, ".roles"))
			return os.Mkdir(filepath.Join(e.WorkDir, ".home"), 0o700)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "as-root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "secret": secret, "private": private, "await": await,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		code = failed.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func secret(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: secret TEXT [file...]")
	}
	var allowed []string
	for _, name := range args[1:] {
		allowed = append(allowed, ts.MkAbs(name))
	}
	for _, stream := range []string{"stdout", "stderr"} {
		if found := spelled(ts.ReadFile(stream), args[0]); found != "" {
			ts.Fatalf("%s shows %q as %q", stream, args[0], found)
		}
	}
	ts.Check(filepath.WalkDir(ts.Getenv("WORK"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || slices.Contains(allowed, path) {
			return err
		}
		data, err := os.ReadFile(path)
		if found := spelled(string(data), args[0]); found != "" {
			ts.Fatalf("%s contains %q as %q", path, args[0], found)
		}
		return err
	}))
}

// spelled finds a secret in a text: as it is, quoted, in a URL, in JSON, in hexadecimal
// digits, or in base64 wherever it begins in what is encoded, and in these
// inside each other. It returns how it stands there.
func spelled(text, secret string) string {
	quoted, _ := json.Marshal(secret) // a string can always be written
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(quoted), `"`)}
	for lead := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			whole := enc.EncodeToString([]byte("__"[:lead] + secret))
			forms = append(forms, whole[(8*lead+5)/6:8*(lead+len(secret))/6])
		}
	}
	spaced := ""
	for i := range len(secret) {
		spaced += fmt.Sprintf(" %02x", secret[i])
	}
	inner, _ := json.Marshal(string(quoted))
	forms = append(forms, hex.EncodeToString([]byte(secret)), spaced, regexp.QuoteMeta(secret), html.EscapeString(secret),
		strings.Trim(string(inner), `\"`))
	for _, f := range forms[:len(forms):len(forms)] {
		forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(f)), url.QueryEscape(f))
	}
	for _, f := range forms {
		if strings.Contains(text, f) {
			return f
		}
	}
	return ""
}

func private(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("unsupported: ! private")
	}
	for _, root := range args {
		ts.Check(filepath.WalkDir(ts.MkAbs(root), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if open := info.Mode().Perm() & 0o077; open != 0 && info.Mode().Type() != fs.ModeSymlink {
				ts.Fatalf("%s has mode %v: others can look at it", path, info.Mode())
			}
			return nil
		}))
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await file")
	}
	for range 600 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s was not made", args[0])
}
