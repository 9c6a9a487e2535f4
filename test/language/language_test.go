package language

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/cli"
)

func TestLanguage(t *testing.T) {
	cases, err := Cases("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.OnlySSH {
				t.Skip("runs over SSH, in test/e2e")
			}
			c.Run(t, Target{Run: func(dir string, args ...string) (int, string, string) {
				t.Chdir(dir)
				t.Setenv("HOME", dir)
				t.Setenv("KK_WORKDIR", filepath.Join(dir, "work"))
				var out, errs bytes.Buffer
				code := cli.Main(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, nil)
				return code, out.String(), errs.String()
			}})
		})
	}
}
