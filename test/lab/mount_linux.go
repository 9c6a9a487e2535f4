package lab

import "golang.org/x/sys/unix"

// mountOverlay mounts the layers, given as the kernel's overlay wants them.
func mountOverlay(target, layers string) error {
	return unix.Mount("overlay", target, "overlay", 0, layers)
}

// detach unmounts also what is in use: it goes when its last user does.
func detach(target string) error { return unix.Unmount(target, unix.MNT_DETACH) }
