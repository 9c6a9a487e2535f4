//go:build tools

// Package tools names the virtual address of control planes that the lab's mirror builds.
package tools

import (
	_ "github.com/kube-vip/kube-vip"
)
