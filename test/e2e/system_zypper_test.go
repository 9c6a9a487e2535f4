package e2e

import (
	"os"
	"testing"
)

func TestZypper(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("apt-get -q -y purge --auto-remove zypper createrepo-c rpm >/dev/null 2>&1; rm -rf /srv/zypper /etc/zypp /etc/rpm/macros.zypper /opt/peer-rpm; true")
	})
	repository, err := os.ReadFile("../peer/testdata/files/rpms.sh")
	if err != nil {
		t.Fatal(err)
	}
	g.sh("set -- /srv/zypper zypper\n" + string(repository) + `
		mkdir -p /etc/rpm
		echo '%_dbpath /var/lib/rpm' >/etc/rpm/macros.zypper # Debian's rpm and zypper look into different folders
		sed 's/peer-rpm/peer-other/g' peer-rpm.spec >other.spec # zypper fails where no package is left
		rpmbuild -bb --define '_topdir /srv/zypper/build' --define '_rpmdir /srv/zypper/others' other.spec >other.log 2>&1
		zypper addrepo --no-gpgcheck /srv/zypper/repo local >/dev/null`)
	g.twice("zypper", "name", "/srv/zypper/others/noarch/peer-other-2.0-1.noarch.rpm", "disable_gpg_check", true)
	g.twice("zypper", "name", "peer-rpm=1.0", "update_cache", true)
	g.same("package", "use", "zypper", "name", "peer-rpm")
	g.twice("package", "use", "zypper", "name", "peer-rpm", "state", "latest")
	g.sees("cat /opt/peer-rpm/version", "2.0")
	g.twice("zypper", "name", "peer-rpm<2.0")
	g.sees("cat /opt/peer-rpm/version", "1.0")
	g.twice("zypper", "name", "*", "state", "latest")
	g.sees("cat /opt/peer-rpm/version", "2.0")
	g.fails("No provider of '+nosuch' found.", "zypper", "name", []any{"peer-rpm", "nosuch"})
	g.twice("zypper", "name", "peer-rpm", "state", "absent")
	g.sees("ls /opt/peer-rpm 2>/dev/null || echo gone", "gone")
}
