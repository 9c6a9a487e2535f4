package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// ofTests finds the number of a process in a lab's name.
var ofTests = regexp.MustCompile(`^[a-z]+-pid([0-9]+)(-|$)`)

// NameOfTests is the name of a lab of this process' tests, by which [Sweep]
// knows it when they have crashed.
func NameOfTests(about string) string { return about + "-pid" + strconv.Itoa(os.Getpid()) }

// guardVariable makes a test binary the guard of the lab that it names.
const guardVariable = "KK_LAB_GUARD"

// RunTests brings up a lab, hands it to use, runs the tests and removes the
// lab, and returns the exit code for [os.Exit]. It is the body of a TestMain:
// run is the Run method of its testing.M. The lab goes away also when a test
// panics, times out or is killed: a second process waits for that. A test that
// brings up a lab of its own names it o.Name-SOMETHING, and the same holds for it.
func RunTests(run func() int, o Options, use func(*Lab)) int {
	return RunGuarded(o.Name, func() int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return runInLab(ctx, run, o, use)
	})
}

// RunGuarded is [RunTests] for tests that bring up their labs themselves, and
// maybe none: each is named NAME-SOMETHING.
func RunGuarded(name string, run func() int) int {
	if name := os.Getenv(guardVariable); name != "" {
		return guard(name)
	}
	if err := Sweep(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "remove what earlier tests left:", err)
	}
	release, err := startGuard(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guard the lab:", err)
		return 1
	}
	defer release()
	code := run()
	if err := downFamily(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// downFamily removes the lab, and labs named after it that a test made for itself.
func downFamily(name string) error {
	labs, err := List()
	errs := []error{err}
	for _, other := range labs {
		if other == name || strings.HasPrefix(other, name+"-") {
			errs = append(errs, Down(context.Background(), other))
		}
	}
	return errors.Join(errs...)
}

// Sweep removes the labs whose tests have ended, and whose guard was killed or
// went down with the machine before it could do so.
func Sweep(ctx context.Context) error {
	labs, err := List()
	errs := []error{err}
	for _, name := range labs {
		if abandoned(name) {
			errs = append(errs, Down(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// abandoned says that the process of tests whose number is in the name of a lab
// is no more; see [NameOfTests].
func abandoned(name string) bool {
	number := ofTests.FindStringSubmatch(name)
	if number == nil {
		return false
	}
	_, err := os.Stat("/proc/" + number[1])
	return errors.Is(err, os.ErrNotExist)
}

// runInLab returns when the tests end or ctx does.
func runInLab(ctx context.Context, run func() int, o Options, use func(*Lab)) int {
	l, err := Up(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	use(l)
	done := make(chan int, 1)
	go func() { done <- run() }()
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "interrupted")
		return 130
	}
}

// startGuard starts a process that removes the lab when this one has ended. It
// notices by the end of its input, which the kernel closes in any case.
func startGuard(name string) (release func(), err error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), guardVariable+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for the guard
	life, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		life.Close()
		cmd.Wait() // the lab is gone by now, or Down has said why not
	}, nil
}

func guard(name string) int {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	if err := downFamily(name); err != nil {
		return 1
	}
	return 0
}
