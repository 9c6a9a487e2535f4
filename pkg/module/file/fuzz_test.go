package file

import (
	"path/filepath"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func FuzzHost(f *testing.F) {
	dir := f.TempDir()
	moduletest.Hostile(f, Modules(), func(module string, args *value.Dict) {
		if module == "fetch" { // it writes on this machine
			args.Set("dest", filepath.Join(dir, "fetched")+"/")
		}
	})
}
