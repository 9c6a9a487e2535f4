package e2e

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"kubekey/test/lab"
)

// hosts is the lab that all tests share, nil where skipReason says why there is none.
var (
	hosts      *lab.Lab
	skipReason string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if skipReason = whyNoLab(); skipReason != "" {
		fmt.Println("skip the tests on real hosts:", skipReason)
		os.Exit(m.Run())
	}
	o := lab.Options{Name: "e2e-" + strconv.Itoa(os.Getpid()), N: 3, Log: os.Stderr}
	os.Exit(lab.RunTests(m.Run, o, func(l *lab.Lab) { hosts = l }))
}

func whyNoLab() string {
	if testing.Short() {
		return "-short is given"
	}
	if err := lab.Usable(); err != nil {
		return err.Error()
	}
	return ""
}

// needHosts skips a test where no lab can run.
func needHosts(t *testing.T) *lab.Lab {
	t.Helper()
	if hosts == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	return hosts
}
