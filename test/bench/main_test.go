package bench

import (
	"os"
	"testing"

	"kubekey/test/lab"
)

// labName begins the names of labs that benchmarks bring up.
func labName() string { return lab.NameOfTests("bench") }

func TestMain(m *testing.M) {
	if lab.Usable() != nil {
		os.Exit(m.Run())
	}
	os.Exit(lab.RunGuarded(labName(), m.Run))
}
