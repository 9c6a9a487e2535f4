package lab

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sealClock tells the kernel that its time is UTC. A machine whose first process is no
// systemd was not notified: the first host that is given another timezone (timedatectl)
// would move the clock of the machine, and of all hosts, by its hours (settimeofday(2),
// warp_clock).
func sealClock() error {
	var utc struct{ minutesWest, dst int32 }
	if _, _, errno := unix.Syscall(unix.SYS_SETTIMEOFDAY, 0, uintptr(unsafe.Pointer(&utc)), 0); errno != 0 {
		return errno
	}
	return nil
}
