package program

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

func TestFor(t *testing.T) {
	if _, ok := For("../README"); ok {
		t.Error("there is a program for no architecture")
	}
	for _, arch := range []string{"amd64", "arm64"} {
		p, ok := For(arch)
		if !ok {
			t.Skip("this build is without the programs: make relay")
		}
		z, err := gzip.NewReader(bytes.NewReader(p.Gzip))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil || !bytes.HasPrefix(text, []byte("\x7fELF")) {
			t.Errorf("%s: %d bytes, %v", arch, len(text), err)
		}
		if len(p.Gzip) > 3<<20 || len(text) > 8<<20 {
			t.Errorf("%s: the program has %d bytes, compressed %d", arch, len(text), len(p.Gzip))
		}
	}
}
