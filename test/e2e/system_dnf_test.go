package e2e

import (
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestDNF(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("{ rpm --erase peer-rpm; apt-get -q -y purge --auto-remove dnf python3-dnf createrepo-c; } >/dev/null 2>&1; rm -rf /srv/rpm /etc/yum.repos.d /opt/peer-rpm; true")
	})
	repository, err := os.ReadFile("../peer/testdata/files/rpms.sh") // two versions of a package; Debian has dnf, too
	if err != nil {
		t.Fatal(err)
	}
	g.sh("apt-get update -q >/dev/null 2>&1; set -- /srv/rpm dnf python3-dnf\n" + string(repository))
	g.twice("yum_repository", "name", "local", "description", "ours", "baseurl", "file:///srv/rpm/repo", "gpgcheck", false)
	results := func(want string, pairs ...any) {
		t.Helper()
		first, _ := g.twice("dnf", pairs...)
		if got := value.Str(moduletest.Field(first, "results")); got != want {
			t.Errorf("%v: results %s, want %s", pairs, got, want)
		}
	}
	results("['Installed: peer-rpm-1.0-1.noarch']", "name", "peer-rpm-1.0")
	g.same("dnf", "name", "peer-rpm")
	results("['Installed: peer-rpm-2.0-1.noarch', 'Removed: peer-rpm-1.0-1.noarch']", "name", "peer-rpm", "state",
		"latest")
	g.sees("cat /opt/peer-rpm/version", "2.0")
	results("['Installed: peer-rpm-1.0-1.noarch', 'Removed: peer-rpm-2.0-1.noarch']", "name", "peer-rpm-1.0",
		"allow_downgrade", true)
	g.twice("yum", "name", "/srv/rpm/repo/noarch/peer-rpm-2.0-1.noarch.rpm", "disable_gpg_check", true)
	g.sees("cat /opt/peer-rpm/version", "2.0")
	listed := value.Str(moduletest.Field(g.run("dnf", "list", "peer-rpm"), "results"))
	if n := strings.Count(listed, "'yumstate': 'available'"); n != 2 ||
		!strings.Contains(listed, "'yumstate': 'installed'") {
		t.Errorf("listed are %s", listed)
	}
	results("['Removed: peer-rpm-2.0-1.noarch']", "name", "peer-rpm", "state", "absent")
	g.sees("ls /opt/peer-rpm 2>/dev/null || echo gone", "gone")
	g.fails("No package nosuch available.", "dnf", "name", "nosuch")
	g.fails("No package nosuch available.", "dnf", "name", []any{"peer-rpm", "nosuch"})
	g.sees("ls /opt/peer-rpm 2>/dev/null || echo gone", "gone")
	g.twice("yum_repository", "name", "local", "state", "absent")
}
