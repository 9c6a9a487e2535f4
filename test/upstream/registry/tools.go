//go:build tools

// Package tools names the distribution registry that the lab's mirror builds.
package tools

import (
	_ "github.com/distribution/distribution/v3/cmd/registry"
)
