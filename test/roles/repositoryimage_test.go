package roles

import (
	"encoding/base64"
	"os/exec"
	"strings"
	"testing"

	"kubekey/test/lab"
)

// onePackage prints an archive of a repository with one package, in base64.
const onePackage = `cd "$(mktemp -d)" && { apt-get update -q && apt-get download socat; } >/dev/null 2>&1
for f in *.deb; do
	dpkg-deb -f "$f"
	printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$f" "$(stat -c %s "$f")" "$(sha256sum "$f" | cut -d' ' -f1)"
done >Packages
tar -c . | base64`

// A host installs what it lacks from an ISO image, which it mounts meanwhile.
func testRepositoryImage(t *testing.T, l *lab.Lab) {
	if _, err := exec.LookPath("genisoimage"); err != nil {
		t.Skip("genisoimage is not installed")
	}
	p := newProject(t)
	p.lab = l
	archive, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(on(t, 0, onePackage), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "repository.tar", string(archive))
	p.write(t, "repository/.keep", "")
	p.command(t, "tar", "-xf", "repository.tar", "-C", "repository")
	p.command(t, "genisoimage", "-quiet", "-R", "-o", "repository.iso", "repository")

	onHost(t, l, 1, "dpkg --purge socat >/dev/null 2>&1; rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin")
	before := onHost(t, l, 1, leftovers)
	config := "system: {repository_iso: " + p.path("repository.iso") + "}\n"
	groups := "    kube_worker: {hosts: {node2: }}\n"
	p.role(t, "os", "main", "kube_worker", groups, config).ok()
	onHost(t, l, 1, "dpkg-query -W socat && ! grep kubekey /proc/mounts && [ -z \"$(losetup -l -n)\" ]")
	if after := onHost(t, l, 1, leftovers); after != before {
		t.Errorf("the host differs from before:\n%s", difference(before, after))
	}
	p.role(t, "os", "main", "kube_worker", groups, config).changedNothing()
	p.role(t, "os", "delete", "kube_worker", groups, config).ok()
}
