package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kubekey/test/lab"
	"kubekey/test/upstream"
)

// rig is what all tests share, nil where skipReason says why there is none.
var (
	rig        *machine
	skipReason string
)

// machine is the lab with its mirror, and the program under test.
type machine struct {
	lab    *lab.Lab
	mirror *upstream.Mirror
	kk     string
}

func TestMain(m *testing.M) {
	os.Exit(lab.Main(withMirror{m}, "cluster", 4, func(l *lab.Lab, whyNot string) {
		if skipReason = whyNot; l != nil {
			rig = &machine{lab: l}
		}
	}))
}

// withMirror runs the tests while the mirror serves the lab.
type withMirror struct{ tests *testing.M }

func (w withMirror) Run() int {
	if rig == nil {
		return w.tests.Run()
	}
	if err := rig.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer rig.mirror.Close()
	return w.tests.Run()
}

// prepare builds kk and the mirror, and starts the mirror.
func (r *machine) prepare() error {
	ctx := context.Background()
	r.kk = filepath.Join(r.lab.Dir(), "kk")
	if err := lab.BuildKK(r.kk); err != nil {
		return err
	}
	u, err := upstream.Build(ctx, "../upstream", os.Stderr)
	if err != nil {
		return err
	}
	r.mirror, err = u.Serve(ctx, r.lab.Gateway()+":5080")
	return err
}
