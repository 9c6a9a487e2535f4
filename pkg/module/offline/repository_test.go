package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/artifact"
	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// exported is an offline file with the packages of upstream for amd64.
func exported(t *testing.T) string {
	t.Helper()
	cache := t.TempDir()
	return exportedFrom(t, cache, fetch(t, newUpstream(t).args(cache)))
}

// exportedFrom is an offline file with the packages that were fetched to a cache.
func exportedFrom(t *testing.T, cache string, fetched module.Result) string {
	t.Helper()
	file := filepath.Join(cache, "packages.tar")
	args := value.NewDict("dest", file, "cache", cache, "packages", moduletest.Field(fetched, "files"))
	if r := moduletest.Run(t, exportSpec(), args, moduletest.Options{}); !r.Changed {
		t.Error("no file was written")
	}
	if r := moduletest.Run(t, exportSpec(), args, moduletest.Options{}); r.Changed {
		t.Error("the same file is a change")
	}
	return file
}

// alone is a host that has no packages.
func alone(t *testing.T) connector.Connector {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dpkg-query"), []byte("#!/bin/sh\n"+
		"echo 'ii  real 1.0 all'\necho 'rc  base 1.0-1 amd64'\necho 'ii  tool 2.0 amd64'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return connector.Env(moduletest.Shell(), map[string]string{"PATH": dir + ":" + os.Getenv("PATH")})
}

func TestRepositoryIsSent(t *testing.T) {
	file := exported(t)
	dest := filepath.Join(t.TempDir(), "repository")
	args := value.NewDict("artifact", []any{file}, "distributions", []any{"testos-1.2", "testos-1"}, "arch", "amd64",
		"dest", dest)
	o := moduletest.Options{Conn: alone(t)}
	r := moduletest.Run(t, repositorySpec(), args, o)
	// real is installed in the version of the repository.
	want := "Packages Release pool/base_1.0-1_amd64.deb pool/lib_2.0+dfsg~1-1_all.deb pool/tool_3.0_amd64.deb"
	if got := names(tree(t, dest)); got != want {
		t.Errorf("the host has %s, not %s", got, want)
	}
	moduletest.Want(t, r, "sent", 5, "distribution", "testos-1")
	moduletest.Want(t, moduletest.Run(t, repositorySpec(), args, o), "sent", 0)

	args.Set("distributions", []any{"testos-2.1", "testos-2"})
	_, err := moduletest.Try(t, repositorySpec(), args, o)
	if err == nil || err.Error() != file+": no packages for testos-2.1 or testos-2 amd64 are in there: export a file with "+
		"--os testos-2 --arch amd64, and add it with -a" {
		t.Errorf("another distribution: %v", err)
	}
}

func TestPackagesThatAreMissing(t *testing.T) {
	file := exported(t)
	need := func(host, distribution, arch string, names ...any) *value.Dict {
		return value.NewDict("host", host, "distributions", []any{distribution + ".7", distribution}, "arch", arch, "names",
			names)
	}
	check := func(hosts ...any) string {
		return moduletest.Run(t, checkSpec(), value.NewDict("artifact", []any{file}, "packages", hosts),
			moduletest.Options{}).Msg
	}
	if msg := check(need("h1", "testos-1", "amd64", "tool", "virtual")); msg != "" {
		t.Error(msg)
	}
	msg := check(need("h3", "testos-1", "amd64", "tool", "vim"), need("h2", "testos-1", "arm64", "tool"),
		need("h1", "testos-1", "arm64", "tool"), need("h4", "other-9", "amd64", "tool"))
	for _, line := range []string{
		"\n- package vim for testos-1 amd64, needed by h3: kk artifact export --os testos-1 --arch amd64 --package vim\n",
		"\n- packages for testos-1 arm64, needed by h1, h2: kk artifact export --os testos-1 --arch arm64\n",
		"\n- packages for other-9 amd64, needed by h4: kk artifact export --os other-9 --arch amd64\n",
	} {
		if !strings.Contains(msg, line) {
			t.Errorf("no %q in\n%s", line, msg)
		}
	}
	if n := strings.Count(msg, "\n- "); n != 3 {
		t.Errorf("%d lines in\n%s", n, msg)
	}

	// What hosts need is verified.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(text), "!<arch>\ndebian-binary", "!<arch>\nDebian-binary", 1)
	if err := os.WriteFile(file, []byte(damaged), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = moduletest.Try(t, checkSpec(), value.NewDict("artifact", []any{file}, "packages",
		[]any{need("h1", "testos-1", "amd64", "tool")}), moduletest.Options{})
	if err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), string(artifact.KindPackage)) {
		t.Errorf("a changed package: %v", err)
	}
}
