//go:build tools

// Package tools names flannel's daemon that the lab's mirror builds.
package tools

import (
	_ "github.com/flannel-io/flannel"
)
