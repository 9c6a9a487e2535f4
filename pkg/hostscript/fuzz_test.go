package hostscript

import (
	"context"
	"testing"

	"kubekey/pkg/connector/connectortest"
)

// FuzzAnswer has a script answer anything: a failure has an error text, and a success was read whole.
func FuzzAnswer(f *testing.F) {
	for _, out := range []string{"", "a=b\x00", "fail=\x00", "a=b\x00a=\x00changed=1\x00", "a\x00", "=\x00", "a=b"} {
		f.Add([]byte(out), "some error", byte(0))
		f.Add([]byte(out), "", byte(1))
	}
	f.Fuzz(func(t *testing.T, out []byte, errs string, code byte) {
		said := connectortest.Answer{Stdout: string(out), Stderr: errs}
		said.Exit.Code = int(code)
		host := &connectortest.Fake{Answer: func(context.Context, connectortest.Call) connectortest.Answer { return said }}
		a, err := New("say a b").Run(t.Context(), host, false)
		switch {
		case err != nil && err.Error() == "":
			t.Error("an error without a text")
		case err == nil && code != 0:
			t.Errorf("exit code %d is no error", code)
		}
		size := 0
		for key, texts := range a {
			a.Number(key)
			for _, text := range texts {
				size += len(key) + len("=\x00") + len(text)
			}
		}
		if a != nil && size != len(out) {
			t.Errorf("%d bytes are read of %q", size, out)
		}
		if err := a.Together("a", "b"); (err != nil) != (len(a["a"]) != len(a["b"])) {
			t.Errorf("%q: %v", a, err)
		}
	})
}
