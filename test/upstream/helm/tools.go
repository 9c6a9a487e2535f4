//go:build tools

// Package tools names helm that the lab's mirror builds.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
