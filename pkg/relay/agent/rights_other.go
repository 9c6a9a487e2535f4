//go:build !linux

package agent

import (
	"errors"
	"os"
)

var errLinux = errors.New("kk-relay runs on Linux only")

func private(string) error { return errLinux }

func lock(*os.File) error { return errLinux }

func notOwn(error) bool { return false }

func confine(string) error { return errLinux }
