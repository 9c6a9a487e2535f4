package roles

import (
	"os"
	"testing"

	"kubekey/test/lab"
)

// hosts is the lab that all tests share, nil where skipReason says why there is none.
var (
	hosts      *lab.Lab
	skipReason string
)

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m, "roles", 3, func(l *lab.Lab, whyNot string) { hosts, skipReason = l, whyNot }))
}
