//go:build tools

// Package tools names runc that the lab's mirror builds.
package tools

import (
	_ "github.com/opencontainers/runc"
)
