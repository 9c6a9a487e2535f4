package crypto

import (
	"testing"

	"kubekey/pkg/module/moduletest"
)

func FuzzHost(f *testing.F) { moduletest.Hostile(f, Modules(), nil) }
