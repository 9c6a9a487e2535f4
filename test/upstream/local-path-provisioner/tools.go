//go:build tools

// Package tools names the local path provisioner that the lab's mirror builds.
package tools

import (
	_ "github.com/rancher/local-path-provisioner"
)
