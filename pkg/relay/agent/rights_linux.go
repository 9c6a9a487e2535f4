package agent

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// private makes sure that only this user reads and writes a folder.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s must be a folder of the user %d: remove it, or choose another one", dir, os.Geteuid())
	}
	return os.Chmod(dir, 0o700)
}

// lock makes sure that one program at a time uses a folder.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}

// notOwn reports whether an address is not one of this host.
func notOwn(err error) bool { return errors.Is(err, syscall.EADDRNOTAVAIL) }

const (
	prSetNoNewPrivs = 38
	capVersion3     = 0x20080522
)

// confine leaves the process nothing of the file system but one folder, and no capability. An ordinary user cannot do
// the former.
func confine(dir string) error {
	if _, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("no new privileges: %w", e)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	if err := syscall.Chroot(dir); err != nil {
		return fmt.Errorf("change the root folder: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	header := struct {
		version uint32
		pid     int32
	}{version: capVersion3}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	_, _, e := syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)),
		uintptr(unsafe.Pointer(&none)), 0)
	if e != 0 {
		return fmt.Errorf("drop capabilities: %w", e)
	}
	return nil
}
