package cache

import (
	"io/fs"
	"syscall"
	"time"
)

// used is when a file was written or read last. Most file systems record reads once a day.
func used(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return later(info.ModTime(), time.Unix(s.Atim.Unix()))
	}
	return info.ModTime()
}
