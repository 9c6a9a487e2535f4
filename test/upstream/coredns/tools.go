//go:build tools

// Package tools names CoreDNS that the lab's mirror builds.
package tools

import (
	_ "github.com/coredns/coredns"
)
