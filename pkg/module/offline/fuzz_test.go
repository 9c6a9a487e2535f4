package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/artifact"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func FuzzHost(f *testing.F) {
	dir := f.TempDir()
	file := filepath.Join(dir, "packages.tar")
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	for _, name := range []string{"Packages", "pool/tool_1_amd64.deb"} {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, []byte("!<arch>\ndebian "+name), 0o644); err != nil {
			f.Fatal(err)
		}
		if err := b.AddFile(f.Context(), artifact.Item{Kind: artifact.KindPackage, Name: name, Distribution: "debian-12",
			File: "packages/debian-12/amd64/" + name}, path); err != nil {
			f.Fatal(err)
		}
	}
	if _, err := b.Write(f.Context(), file, artifact.Options{}); err != nil {
		f.Fatal(err)
	}
	moduletest.Hostile(f, Modules(), func(module string, args *value.Dict) {
		switch module {
		case "artifact_packages":
			args.Set("remote", true)
			args.Set("cache", filepath.Join(dir, "cache"))
		case "artifact_repository":
			args.Set("artifact", []any{file})
		}
	})
}

// FuzzDebs has apt print anything. What is read names one file below the repository, and has a digest.
func FuzzDebs(f *testing.F) {
	f.Add("'file:/a/b_1_all.deb' b_1%3a2_all.deb 3 MD5Sum:x\n", "Package: b\nVersion: 1:2\nArchitecture: all\nSize: 3\n"+
		"SHA256: "+strings.Repeat("a", 64)+"\nFilename: x\n")
	f.Add("'http://x/' ../b_1_all.deb 3 SHA256:x", "Package: ../b\n\n\n:")
	f.Fuzz(func(t *testing.T, files, records string) {
		all, err := debs(files, records)
		if err != nil {
			return
		}
		for _, p := range all {
			if !filepath.IsLocal(p.file) || strings.Count(p.file, "/") != 1 || !isSHA256(p.sha256) || p.size < 0 ||
				strings.Count("\n"+p.record, "\nFilename: ") != 1 || strings.ContainsAny(p.fetched, "/\n") {
				t.Errorf("%+v", p)
			}
		}
	})
}
