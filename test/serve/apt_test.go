package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/artifact/artifacttest"
)

const control = `Package: kk-sample
Version: 1:1.0+b1~x
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: a sample
`

// debianPackage builds a package with one file.
func debianPackage(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	check(t, os.MkdirAll(filepath.Join(dir, "DEBIAN"), 0o755))
	check(t, os.MkdirAll(filepath.Join(dir, "usr/share/kk-sample"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "DEBIAN/control"), []byte(control), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "usr/share/kk-sample/text"), []byte("of a package\n"), 0o600))
	output(t, "dpkg-deb", "--root-owner-group", "--build", dir, dir+".deb")
	text, err := os.ReadFile(dir + ".deb")
	check(t, err)
	return string(text)
}

// TestApt has apt-get fetch a package, without root and with folders of its own.
func TestApt(t *testing.T) {
	program(t, "apt-get", "apt")
	program(t, "dpkg-deb", "dpkg")
	const folder = "packages/debian-12/amd64/"
	deb := debianPackage(t)
	packages := control + fmt.Sprintf("Filename: ./kk-sample_1.0+b1~x_all.deb\nSize: %d\nSHA256: %s\n\n", len(deb),
		sha([]byte(deb)))
	release := fmt.Sprintf("Suite: kk\nDate: Thu, 01 Jan 1970 00:00:00 UTC\nSHA256:\n %s %d Packages\n",
		sha([]byte(packages)), len(packages))
	o := artifacttest.Sample(t, map[string]string{folder + "Packages": packages, folder + "Release": release,
		folder + "kk-sample_1.0+b1~x_all.deb": deb})
	url := serve(t, o.Path)
	dir := t.TempDir()
	for _, d := range []string{"state/lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d",
		"etc/sources.list.d"} {
		check(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	check(t, os.WriteFile(filepath.Join(dir, "state/status"), nil, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "etc/sources.list"), []byte("deb [trusted=yes] "+url+folder+" ./\n"), 0o600))
	apt := []string{"-q", "-y", "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=0",
		"-o", "Dir::State=" + dir + "/state", "-o", "Dir::State::status=" + dir + "/state/status",
		"-o", "Dir::Cache=" + dir + "/cache", "-o", "Dir::Etc=" + dir + "/etc",
		"-o", "Debug::NoLocking=1", "-o", "APT::Architecture=amd64"}
	output(t, "apt-get", append(apt, "update")...)
	output(t, "apt-get", append(apt, "install", "--download-only", "kk-sample")...)
	found, err := filepath.Glob(dir + "/cache/archives/*.deb")
	check(t, err)
	if len(found) != 1 {
		t.Fatalf("fetched %q", found)
	}
	text, err := os.ReadFile(found[0])
	if err != nil || string(text) != deb {
		t.Errorf("%s: %d bytes of %d, %v", found[0], len(text), len(deb), err)
	}
	if contents := output(t, "dpkg-deb", "-c", found[0]); !strings.Contains(contents, "kk-sample/text") {
		t.Error(contents)
	}
}
