package e2e

import (
	"os"
	"testing"

	"kubekey/test/lab"
)

// hosts is the lab that all tests share, nil where skipReason says why there is none.
// free has the numbers of its hosts that none of the tests has that run side by side.
var (
	hosts      *lab.Lab
	skipReason string
	free       = make(chan int, 3)
)

func TestMain(m *testing.M) {
	for i := range cap(free) {
		free <- i
	}
	os.Exit(lab.Main(m, "e2e", cap(free), func(l *lab.Lab, whyNot string) { hosts, skipReason = l, whyNot }))
}

// needHosts skips a test where no lab can run.
func needHosts(t *testing.T) *lab.Lab {
	t.Helper()
	if hosts == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	return hosts
}
