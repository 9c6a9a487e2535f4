//go:build !linux

package cache

import (
	"io/fs"
	"time"
)

// used is when a file was written last.
func used(info fs.FileInfo) time.Time { return info.ModTime() }
