package offline

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kubekey/pkg/artifact"
	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/relay/program"
	"kubekey/pkg/value"
)

// liar is a host that prints the same for every command, whatever it gets.
type liar struct {
	text []byte
	code int
}

func (l liar) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	if c.Stdout != nil {
		if _, err := c.Stdout.Write(l.text); err != nil {
			return connector.Exit{}, err
		}
	}
	return connector.Exit{Code: l.code}, ctx.Err()
}

func (liar) Close() error { return nil }

// FuzzDistribute distributes to a host that answers with what the fuzzer made up. It may fail, with a text.
func FuzzDistribute(f *testing.F) {
	for _, text := range []string{"", "zstd\n", `{"id":1,"port":5}` + "\n" + `{"id":2,"has":[0,7,-1]}` + "\n", "send\nsum x\n",
		`{"id":1}` + "\n" + `{"id":2,"error":"x","fault":"wrong"}` + "\n" + `{"id":3}` + "\n{\"id\":4}\n", strings.Repeat("x", 70_000)} {
		f.Add([]byte(text), byte(0), true)
		f.Add([]byte(text), byte(1), false)
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "program")
	if err := os.WriteFile(path, bytes.Repeat([]byte("program "), 100), 0o600); err != nil {
		f.Fatal(err)
	}
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	if err := b.AddFile(f.Context(), artifact.Item{Kind: artifact.KindFile, Name: "program", File: "amd64/program"}, path); err != nil {
		f.Fatal(err)
	}
	file := filepath.Join(dir, "file.tar")
	if _, err := b.Write(f.Context(), file, artifact.Options{}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte, code byte, carried bool) {
		synctest.Test(t, func(t *testing.T) { // what waits for ever is a failure
			spec := distributeSpec()
			spec.New = func() module.Runner {
				return &distribute{program: func(string) (program.Program, bool) { return program.Program{SHA256: strings.Repeat("0", 64)}, carried }}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			connect := func(context.Context, string) (connector.Connector, error) {
				return liar{text: text, code: int(code)}, nil
			}
			r, err := moduletest.Try(t, spec, value.NewDict("artifact", []any{file}, "mode", "relay", "hosts", []any{
				value.NewDict("name", "h", "address", "127.0.0.1", "files", []any{"amd64/program"})}),
				moduletest.Options{Connect: connect, Context: ctx})
			if err == nil && r.Failed && r.Msg == "" {
				t.Errorf("it failed without a text: %+v", r)
			}
			if ctx.Err() != nil {
				t.Errorf("it took an hour: %v", err)
			}
		})
	})
}
