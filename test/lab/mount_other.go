//go:build !linux

package lab

import "errors"

// errNotLinux cannot happen after [Usable] has said yes; it lets the package,
// and the tests that skip, build elsewhere.
var errNotLinux = errors.New("the lab needs Linux")

func mountOverlay(_, _ string) error { return errNotLinux }

func detach(string) error { return errNotLinux }

func sealClock() error { return errNotLinux }
