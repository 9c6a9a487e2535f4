package lab

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// Main is the body of the TestMain of a package whose tests share a lab of n
// hosts: it runs the tests, and returns the exit code for [os.Exit]. Before,
// use gets the lab, or the reason why there is none; tests that need it skip then. The
// lab's name begins with what the package is about, and its hosts have packages
// of Debian beside the usual ones; see [RunTests].
func Main(tests interface{ Run() int }, about string, n int, use func(l *Lab, whyNot string), packages ...string) int {
	flag.Parse()
	whyNot := ""
	if err := Usable(); testing.Short() {
		whyNot = "-short is given"
	} else if err != nil {
		whyNot = err.Error()
	}
	if whyNot != "" {
		fmt.Printf("skip the tests of %s on hosts: %s\n", about, whyNot)
		use(nil, whyNot)
		return tests.Run()
	}
	o := Options{Name: NameOfTests(about), N: n, Packages: packages, Log: os.Stderr}
	return RunTests(tests.Run, o, func(l *Lab) { use(l, "") })
}
