package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	flag.Parse()
	switch err := lab.Usable(); {
	case testing.Short():
		skipReason = "-short is given"
	case err != nil:
		skipReason = err.Error()
	}
	if skipReason != "" {
		fmt.Println("skip the clusters:", skipReason)
		os.Exit(m.Run())
	}
	os.Exit(runWithMirror(m))
}

func runWithMirror(m *testing.M) int {
	o := lab.Options{Name: "cluster-" + strconv.Itoa(os.Getpid()), N: 4, Log: os.Stderr}
	run := func() int {
		if err := rig.prepare(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer rig.mirror.Close()
		return m.Run()
	}
	return lab.RunTests(run, o, func(l *lab.Lab) { rig = &machine{lab: l} })
}

// prepare builds kk and the mirror, and starts the mirror.
func (r *machine) prepare() error {
	ctx := context.Background()
	r.kk = filepath.Join(r.lab.Dir(), "kk")
	build := exec.Command("go", "build", "-trimpath", "-o", r.kk, "kubekey/cmd/kk")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build kk: %w: %s", err, out)
	}
	u, err := upstream.Build(ctx, "../upstream", os.Stderr)
	if err != nil {
		return err
	}
	r.mirror, err = u.Serve(ctx, r.lab.Gateway()+":5080")
	return err
}
