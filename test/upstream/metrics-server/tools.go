//go:build tools

// Package tools names the metrics server that the lab's mirror builds.
package tools

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
