package roles

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
		fmt.Println("skip the tests of roles:", skipReason)
		os.Exit(m.Run())
	}
	o := lab.Options{Name: "roles-" + strconv.Itoa(os.Getpid()), N: 3, Log: os.Stderr}
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
