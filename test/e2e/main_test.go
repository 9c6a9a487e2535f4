package e2e

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
	os.Exit(lab.Main(m, "e2e", 3, func(l *lab.Lab, whyNot string) { hosts, skipReason = l, whyNot }))
}

// needHosts skips a test where no lab can run.
func needHosts(t *testing.T) *lab.Lab {
	t.Helper()
	if hosts == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	return hosts
}
