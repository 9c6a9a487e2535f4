package serve

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/artifact/artifacttest"
)

// rpmRepository builds a repository of two packages, one of which needs the other; its files by their names.
func rpmRepository(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", `
for name in kk-base kk-sample; do
	printf '%s\n' "Name: $name" 'Version: 1.0~b+1' 'Release: 1' 'Summary: for tests' 'License: MIT' 'BuildArch: noarch' \
		"$([ $name = kk-base ] || echo 'Requires: kk-base')" '%description' 'for tests' '%install' \
		"mkdir -p %{buildroot}/opt/$name" "echo $name >%{buildroot}/opt/$name/text" '%files' "/opt/$name" >s.spec
	rpmbuild -bb --quiet --define "_topdir $PWD/build" --define "_rpmdir $PWD/repo/Packages" s.spec
done
createrepo_c -q --no-database --general-compress-type gz repo`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := map[string]string{}
	check(t, filepath.WalkDir(repo, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, repo+"/")] = string(text)
		return err
	}))
	return files
}

// TestDNF has dnf resolve and fetch packages for an empty root.
func TestDNF(t *testing.T) {
	program(t, "dnf", "dnf, dnf-plugins-core")
	program(t, "createrepo_c", "createrepo-c")
	program(t, "rpmbuild", "rpm")
	const folder = "packages/rocky-9/amd64/"
	files, packages := rpmRepository(t), map[string]string{}
	for name, text := range files {
		packages[folder+name] = text
	}
	url := serve(t, artifacttest.Sample(t, packages).Path)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "dnf.conf"), []byte("[main]\nreposdir=/dev/null\ngpgcheck=0\ncachedir="+dir+
		"/cache\nlogdir="+dir+"/log\npersistdir="+dir+"/persist\n[kk]\nname=kk\nbaseurl="+url+folder+"\n"), 0o600))
	output(t, "dnf", "-q", "-y", "-c", dir+"/dnf.conf", "--installroot="+dir+"/root", "--releasever=9",
		"--forcearch=x86_64", "--disableplugin=local", "download", "--resolve", "--alldeps", "--destdir", dir+"/fetched",
		"kk-sample")
	for _, name := range []string{"kk-base", "kk-sample"} {
		rpm := name + "-1.0~b+1-1.noarch.rpm"
		text, err := os.ReadFile(filepath.Join(dir, "fetched", rpm))
		if err != nil || string(text) != files["Packages/noarch/"+rpm] || len(text) == 0 {
			t.Errorf("%s: %d bytes of %d, %v", rpm, len(text), len(files["Packages/noarch/"+rpm]), err)
		}
	}
}
