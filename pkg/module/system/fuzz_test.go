package system

import (
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func FuzzHost(f *testing.F) {
	moduletest.Hostile(f, Modules(), func(name string, args *value.Dict) {
		if name == "hostname" {
			args.Set("name", "web1") // its example has a template
		}
	})
}
