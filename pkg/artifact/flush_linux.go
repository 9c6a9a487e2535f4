package artifact

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginToWrite lets the kernel begin to write what a file has in memory, and does not wait.
func beginToWrite(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // the sync at the end reports errors
}
