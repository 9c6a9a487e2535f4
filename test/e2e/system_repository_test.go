package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

// debianKey is a keyring that every host has.
const debianKey = "/usr/share/keyrings/debian-archive-bookworm-stable.gpg"

func TestAptRepository(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("rm -rf /etc/apt/sources.list.d/kk* /etc/apt/sources.list.d/_srv* /etc/apt/sources.list.d/srv* /srv/repo; apt-get update -q >/dev/null 2>&1; true")
	})
	g.sh("mkdir -p /srv/repo; : >/srv/repo/Packages")
	const line = "deb [trusted=yes] file:/srv/repo ./"
	first, _ := g.twice("apt_repository", "repo", line)
	g.sees("cat /etc/apt/sources.list.d/file_srv_repo.list; stat -c %a /etc/apt/sources.list.d/file_srv_repo.list; ls /var/lib/apt/lists | grep -c srv_repo", line+"\n644\n1")
	if value.Repr(dataOf(first, "sources_added")) != "['/etc/apt/sources.list.d/file_srv_repo.list']" ||
		dataOf(first, "state") != "present" || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.same("apt_repository", "repo", "deb   [trusted=yes] file:/srv/repo   ./", "filename", "other")
	g.sh("sed -i 's/^/# /' /etc/apt/sources.list.d/file_srv_repo.list")
	g.twice("apt_repository", "repo", line, "update_cache", false)
	g.sees("cat /etc/apt/sources.list.d/file_srv_repo.list", line)
	g.twice("apt_repository", "repo", "deb-src file:/srv/repo ./", "filename", "kk-own", "mode", "0600", "update_cache",
		false)
	g.sees("stat -c %a /etc/apt/sources.list.d/kk-own.list", "600")
	g.twice("apt_repository", "repo", "deb-src file:/srv/repo ./", "state", "absent", "update_cache", false)
	last, _ := g.twice("apt_repository", "repo", line, "state", "absent")
	g.sees("ls /etc/apt/sources.list.d/*srv* /etc/apt/sources.list.d/kk* 2>/dev/null", "")
	if value.Repr(dataOf(last, "sources_removed")) != "['/etc/apt/sources.list.d/file_srv_repo.list']" {
		t.Errorf("got %+v", last)
	}
	g.sh("printf '# mine\\n' >/etc/apt/sources.list.d/kk.list")
	g.fails("Failed to update apt cache", "apt_repository", "repo", "deb [trusted=yes] file:/srv/none ./", "filename",
		"kk", "update_cache_retries", 1)
	g.sees("cat /etc/apt/sources.list.d/kk.list", "# mine")
	g.fails("Failed to update apt cache", "apt_repository", "repo", "deb [trusted=yes] file:/srv/none ./", "filename",
		"kk2", "update_cache_retries", 0)
	g.sees("ls /etc/apt/sources.list.d/kk2.list 2>/dev/null", "")
	g.fails("Invalid repository string", "apt_repository", "repo", "http://deb.debian.org stable main")
	g.fails("write ppa:OWNER/NAME", "apt_repository", "repo", "ppa:some one/thing")
}

func TestAptKey(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("rm -f /etc/apt/trusted.gpg /srv/ring.gpg /srv/key; mv /srv/aside.d/* /etc/apt/trusted.gpg.d/; rmdir /srv/aside.d; true")
	})
	fingerprint := keyFingerprint(g) // needs apt, and so its keys
	g.sh("mkdir -p /srv/aside.d; mv /etc/apt/trusted.gpg.d/* /srv/aside.d/; rm -f /etc/apt/trusted.gpg; cp " + debianKey +
		" /srv/key")
	first, second := g.twice("apt_key", "file", "/srv/key")
	g.sees("cmp /etc/apt/trusted.gpg /srv/key && stat -c %a /etc/apt/trusted.gpg", "644")
	if dataOf(first, "fp") != fingerprint[24:] || dataOf(first, "short_id") != fingerprint[32:] ||
		value.Repr(dataOf(first, "before")) != "[]" || value.Repr(dataOf(second, "after")) != "['"+fingerprint[24:]+"']" {
		t.Errorf("of the key %s: %s", fingerprint, value.Repr(first.Data))
	}
	g.same("apt_key", "id", fingerprint[32:], "url", "http://192.0.2.1/none")
	g.twice("apt_key", "id", "0x"+strings.ToLower(fingerprint), "state", "absent")
	g.sees("ls /etc/apt/trusted.gpg 2>/dev/null", "")
	g.sh("cp /srv/aside.d/debian-archive-bookworm-stable.asc /srv/aside.d/debian-archive-bullseye-stable.asc /etc/apt/trusted.gpg.d/")
	g.same("apt_key", "file", "/srv/key")
	armored := g.sh("cat /srv/aside.d/debian-archive-bullseye-stable.asc")
	g.twice("apt_key", "data", armored, "keyring", "/srv/ring.gpg")
	g.sh("cat /srv/key >>/srv/ring.gpg")
	g.twice("apt_key", "data", armored, "keyring", "/srv/ring.gpg", "state", "absent")
	g.sees("cmp /srv/ring.gpg /srv/key && echo same", "same")
	g.fails("key does not seem to have been added", "apt_key", "id", "DEADBEEF", "file", "/srv/key")
	g.fails("read the key: it is not an OpenPGP key", "apt_key", "file", "/etc/passwd")
	g.fails("file not found: /srv/none", "apt_key", "file", "/srv/none")
	g.fails("is not the ID of a key", "apt_key", "id", "nonsense", "state", "absent")
	g.fails("mutually exclusive", "apt_key", "data", "x", "url", "y")
	g.fails("one of the following is required", "apt_key", "id", "DEADBEEF")
}

func keyFingerprint(g target) string {
	g.t.Helper()
	g.sh("command -v gpg >/dev/null || { apt-get update -q && apt-get -q -y install --no-install-recommends gpg; } >/dev/null 2>&1")
	f := g.sh("gpg -q --batch --with-colons --show-keys " + debianKey +
		" 2>/dev/null | sed -n 's/^fpr:*\\([0-9A-F]*\\):.*/\\1/p' | head -n 1")
	if len(f) != 40 {
		g.t.Fatalf("gpg says that the fingerprint is %q", f)
	}
	return f
}

func TestAptKeyFromAServer(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("kill $(cat /run/www.pid); rm -rf /srv/www /srv/ring.gpg /run/www.pid; true") })
	fingerprint := keyFingerprint(g)
	g.sh("mkdir -p /srv/www/pks; cp " + debianKey + " '/srv/www/pks/lookup?op=get&options=mr&search=0x" + fingerprint +
		"'; cp " + debianKey + " /srv/www/key.gpg")
	g.serve("/srv/www")
	g.twice("apt_key", "id", fingerprint, "keyserver", "hkp://127.0.0.1:8099", "keyring", "/srv/ring.gpg")
	g.sees("cmp /srv/ring.gpg "+debianKey+" && echo same", "same")
	g.twice("apt_key", "url", "http://127.0.0.1:8099/key.gpg", "keyring", "/srv/ring.gpg", "state", "absent")
	g.twice("apt_key", "url", "http://127.0.0.1:8099/key.gpg", "keyring", "/srv/ring.gpg")
	g.sh("rm -f /etc/apt/keyrings/my-repo.*")
	repo := []any{"name", "My_Repo!", "uris", "http://192.0.2.1/debian", "suites", "stable", "components",
		[]any{"main", "extra"}, "signed_by", "http://127.0.0.1:8099/key.gpg"}
	first, _ := g.twice("deb822_repository", repo...)
	g.sees("cat /etc/apt/sources.list.d/my-repo.sources; cmp /etc/apt/keyrings/my-repo.gpg "+debianKey+" && echo same",
		"Components: main extra\nX-Repolib-Name: My_Repo!\nSigned-By: /etc/apt/keyrings/my-repo.gpg\nSuites: stable\nTypes: deb\nURIs: http://192.0.2.1/debian\nsame")
	if dataOf(first, "key_filename") != "/etc/apt/keyrings/my-repo.gpg" ||
		dataOf(first, "dest") != "/etc/apt/sources.list.d/my-repo.sources" {
		t.Errorf("got %s", value.Repr(first.Data))
	}
	g.sh("echo other >/etc/apt/keyrings/my-repo.gpg")
	g.twice("deb822_repository", repo...)
	g.twice("deb822_repository", "name", "My_Repo!", "state", "absent")
	g.sees("ls /etc/apt/sources.list.d/my-repo* /etc/apt/keyrings/my-repo* 2>/dev/null", "")
}

func TestDeb822Repository(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("rm -rf /etc/apt/sources.list.d/kk-flat.sources /srv/repo; true") })
	g.sh("mkdir -p /srv/repo; : >/srv/repo/Packages")
	args := []any{"name", "kk flat", "uris", "file:/srv/repo", "suites", "./", "trusted", true, "by_hash", false,
		"date_max_future", 60, "architectures", "amd64"}
	first, _ := g.twice("deb822_repository", args...)
	g.sees("cat /etc/apt/sources.list.d/kk-flat.sources; stat -c %a /etc/apt/sources.list.d/kk-flat.sources; apt-get update --print-uris | grep -q srv.repo && echo 1",
		"Architectures: amd64\nBy-Hash: no\nDate-Max-Future: 60\nX-Repolib-Name: kk flat\nSuites: ./\nTrusted: yes\nTypes: deb\nURIs: file:/srv/repo\n644\n1")
	if text, _ := dataOf(first, "repo").(string); !strings.HasPrefix(text, "Architectures: amd64\n") ||
		len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.twice("deb822_repository", append(args, "mode", "0640")...)
	g.twice("deb822_repository", append(args, "mode", "0640", "signed_by",
		"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n")...)
	g.sees("sed -n '/^Signed/,/^Suites/p' /etc/apt/sources.list.d/kk-flat.sources; stat -c %a /etc/apt/sources.list.d/kk-flat.sources",
		"Signed-By:\n    -----BEGIN PGP PUBLIC KEY BLOCK-----\n    .\n    AAAA\n    -----END PGP PUBLIC KEY BLOCK-----\nSuites: ./\n640")
	bare := "F8B5C3D4E5F6A1B2C3D4E5F6A1B2C3D4E5F6C37C"
	third, _ := g.twice("deb822_repository",
		append(args, "signed_by", []any{"/srv/key.gpg", "F8B5 C3D4 E5F6 A1B2 C3D4 E5F6 A1B2 C3D4 E5F6 C37C"})...)
	g.sees("grep ^Signed /etc/apt/sources.list.d/kk-flat.sources", "Signed-By: /srv/key.gpg "+bare)
	if dataOf(third, "key_filename") != "/srv/key.gpg" {
		t.Errorf("got %s", value.Repr(third.Data))
	}
	g.fails("exact path", "deb822_repository", append(args, "components", "main")...)
	g.fails("uris, suites", "deb822_repository", "name", "x")
	g.fails("must contain a letter", "deb822_repository", "name", "!", "state", "absent")
}

func TestYumRepository(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("rm -rf /srv/repos") })
	g.sh("mkdir -p /srv/repos; printf '# all of them\\n[old]\\nname = Old\\nbaseurl=x\\n' >/srv/repos/all.repo")
	args := []any{"name", "epel", "file", "all", "reposdir", "/srv/repos", "description", "EPEL", "baseurl",
		[]any{"http://a/", "http://b/"}, "gpgcheck", false, "exclude", "x*,y", "password", "s3cret!"}
	first, _ := g.twice("yum_repository", args...)
	g.sees("cat /srv/repos/all.repo", "# all of them\n[old]\nname = Old\nbaseurl=x\n\n[epel]\nbaseurl = http://a/\n\thttp://b/\nexclude = x* y\ngpgcheck = 0\nname = EPEL\npassword = s3cret!")
	if dataOf(first, "repo") != "epel" || len(first.Diff) != 1 ||
		strings.Contains(value.Str(first.Diff[0].After), "s3cret") {
		t.Errorf("got %+v", first)
	}
	g.twice("yum_repository", "name", "old", "file", "all", "reposdir", "/srv/repos", "description", "New", "mirrorlist",
		"http://m/", "mode", "0600", "owner", "ops")
	g.sees("head -n 5 /srv/repos/all.repo; stat -c '%a %U' /srv/repos/all.repo",
		"# all of them\n[old]\nmirrorlist = http://m/\nname = New\n\n600 ops")
	g.twice("yum_repository", "name", "epel", "file", "all", "reposdir", "/srv/repos", "state", "absent")
	g.twice("yum_repository", "name", "old", "file", "all", "reposdir", "/srv/repos", "state", "absent")
	g.sees("ls /srv/repos", "")
	g.fails("'baseurl', 'metalink' or 'mirrorlist' is required", "yum_repository", "name", "x", "description", "X")
	g.fails("'description' is required", "yum_repository", "name", "x", "baseurl", "X")
	g.fails("one line", "yum_repository", "name", "x", "description", "X\n[y]", "baseurl", "z")
	g.fails("must be the name of a repository", "yum_repository", "name", "a]b", "description", "X", "baseurl", "z")
}

func TestRPMKey(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("rpm --erase --allmatches gpg-pubkey; apt-get -q -y purge rpm >/dev/null 2>&1; rm -f /srv/rpmkey; true")
	})
	g.sh("{ apt-get update -q; apt-get -q -y install --no-install-recommends rpm gpg; } >/dev/null 2>&1; cp " + debianKey +
		" /srv/rpmkey")
	fingerprint := keyFingerprint(g)
	first, _ := g.twice("rpm_key", "key", "/srv/rpmkey", "fingerprint", strings.ToLower(fingerprint))
	if dataOf(first, "fingerprint") != fingerprint {
		t.Errorf("got %s", value.Repr(first.Data))
	}
	g.sees("rpm -q gpg-pubkey --qf '%{VERSION}'", strings.ToLower(fingerprint[32:]))
	g.twice("rpm_key", "key", "0x"+fingerprint[24:], "state", "absent")
	g.sees("rpm -q gpg-pubkey || :", "package gpg-pubkey is not installed")
	g.same("rpm_key", "key", "/srv/rpmkey", "state", "absent")
	g.fails("does not match the key fingerprint '"+fingerprint, "rpm_key", "key", "/srv/rpmkey", "fingerprint",
		strings.Repeat("0", 40))
	g.fails("needs the key itself", "rpm_key", "key", "DEADBEEF")
	g.fails("file /srv/none does not exist", "rpm_key", "key", "/srv/none")
	g.fails("Not a valid key", "rpm_key", "key", "/etc/passwd")
}

func TestDebconf(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("echo PURGE | debconf-communicate kk-test >/dev/null; true") })
	first, second := g.twice("debconf", "name", "kk-test", "question", "kk-test/name", "vtype", "string", "value",
		"it's me")
	g.sees("echo GET kk-test/name | debconf-communicate kk-test; debconf-show kk-test",
		"0 it's me\n* kk-test/name: it's me")
	if value.Repr(dataOf(first, "previous")) != "{'kk-test/name': ''}" ||
		value.Repr(dataOf(second, "current")) != `{'kk-test/name': "it's me"}` || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.twice("debconf", "name", "kk-test", "question", "kk-test/on", "vtype", "boolean", "value", true, "unseen", true)
	hidden, _ := g.twice("debconf", "name", "kk-test", "question", "kk-test/secret", "vtype", "password", "value",
		"s3cret!")
	if strings.Contains(value.Repr(hidden.Data)+value.Repr(hidden.Diff[0].After), "s3cret") {
		t.Errorf("the password is shown: %+v", hidden)
	}
	g.sees("echo GET kk-test/secret | debconf-communicate kk-test", "0 s3cret!")
	all := g.same("debconf", "name", "kk-test")
	if got := value.Repr(dataOf(all, "current")); !strings.Contains(got, "'kk-test/on': 'true'") {
		t.Errorf("got %s", got)
	}
	g.fails("valid vtype and value", "debconf", "name", "x", "question", "y")
	g.fails("is not the name", "debconf", "name", "x y", "question", "y", "vtype", "string", "value", "z")
}

func TestDpkgSelections(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("echo tar install | dpkg --set-selections") })
	first, _ := g.twice("dpkg_selections", "name", "tar", "selection", "hold")
	g.sees("dpkg --get-selections tar | tr -s '\\t' ' '", "tar hold")
	if dataOf(first, "before") != "install" || dataOf(first, "after") != "hold" {
		t.Errorf("got %+v", first)
	}
	g.fails("Failed to find package 'no-such-package'", "dpkg_selections", "name", "no-such-package", "selection", "hold")
}

// TestTimezone keeps the real timedatectl and hwclock from running: hosts of
// the lab have the machine's clock, which they would set.
func TestTimezone(t *testing.T) {
	g := newTarget(t)
	was := g.sh("readlink /etc/localtime; cat /etc/timezone 2>/dev/null")
	t.Cleanup(func() {
		link, name, _ := strings.Cut(was, "\n")
		g.sh("ln -sf " + link + " /etc/localtime; echo " + name +
			" >/etc/timezone; rm -f /etc/adjtime /srv/calls; mv /usr/bin/timedatectl.real /usr/bin/timedatectl; [ ! -e /sbin/hwclock.real ] || mv /sbin/hwclock.real /sbin/hwclock")
	})
	g.sh(`echo Etc/UTC >/etc/timezone; ln -sf /usr/share/zoneinfo/Etc/UTC /etc/localtime; rm -f /etc/adjtime
mv /usr/bin/timedatectl /usr/bin/timedatectl.real; [ ! -e /sbin/hwclock ] || mv /sbin/hwclock /sbin/hwclock.real
cat >/usr/bin/timedatectl <<'END'
#!/bin/sh
echo "$*" >>/srv/calls
case "$*" in
'set-local-rtc 1') printf '0.0 0 0.0\n0\nLOCAL\n' >/etc/adjtime ;;
'set-local-rtc 0') rm -f /etc/adjtime ;;
*) exit 1 ;;
esac
END
chmod 755 /usr/bin/timedatectl`)
	first, _ := g.twice("timezone", "name", "Europe/Berlin")
	g.sees("readlink -f /etc/localtime; cat /etc/timezone; date +%Z; ls /srv/calls 2>/dev/null",
		"/usr/share/zoneinfo/Europe/Berlin\nEurope/Berlin\n"+g.sh("TZ=Europe/Berlin date +%Z"))
	if len(first.Diff) != 1 || value.Repr(first.Diff[0].Before) != "{'name': 'Etc/UTC'}" {
		t.Errorf("diff %+v", first.Diff)
	}
	g.twice("timezone", "hwclock", "local")
	g.twice("timezone", "name", "Etc/UTC", "hwclock", "UTC")
	g.sees("cat /srv/calls; cat /etc/timezone", "set-local-rtc 1\nset-timezone Etc/UTC\nset-local-rtc 0\nEtc/UTC")
	g.fails("not available", "timezone", "name", "Mars/Olympus")
	g.fails("must be the name of a time zone", "timezone", "name", "../../etc/passwd")
	g.fails("one of the following is required", "timezone")
}

func TestAlternatives(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("update-alternatives --quiet --remove-all kk-tool; rm -f /usr/local/bin/kk-* /srv/kk-*; true")
	})
	g.sh("for n in a b c; do printf '#!/bin/sh\\necho '$n'\\n' >/srv/kk-$n; chmod +x /srv/kk-$n; done; : >/srv/kk-a.1")
	link := []any{"name", "kk-tool", "link", "/usr/local/bin/kk-tool"}
	first, _ := g.twice("alternatives", append(link, "path", "/srv/kk-a", "priority", 10, "state", "present")...)
	if first.Msg != "Install alternative '/srv/kk-a' for 'kk-tool'." || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.twice("alternatives", append(link, "path", "/srv/kk-b", "priority", 20, "state", "auto")...)
	g.sees("/usr/local/bin/kk-tool", "b")
	g.twice("alternatives", "name", "kk-tool", "path", "/srv/kk-a")
	g.sees("/usr/local/bin/kk-tool; update-alternatives --query kk-tool | grep Status", "a\nStatus: manual")
	g.twice("alternatives", append(link, "path", "/srv/kk-c")...)
	g.sees("/usr/local/bin/kk-tool; update-alternatives --query kk-tool | tail -n 1", "c\nPriority: 50")
	sub := []any{value.NewDict("name", "kk-tool.1", "path", "/srv/kk-a.1", "link", "/usr/local/bin/kk-tool.1")}
	g.twice("alternatives", "name", "kk-tool", "path", "/srv/kk-a", "subcommands", sub)
	g.sees("readlink -f /usr/local/bin/kk-tool.1", "/srv/kk-a.1")
	g.twice("alternatives", "name", "kk-tool", "path", "/srv/kk-a", "priority", 11)
	g.sees("readlink -f /usr/local/bin/kk-tool.1", "/srv/kk-a.1")
	g.twice("alternatives", "name", "kk-tool", "path", "/srv/kk-a", "subcommands", []any{})
	g.twice("alternatives", "name", "kk-tool", "path", "/srv/kk-a", "state", "auto")
	g.sees("/usr/local/bin/kk-tool", "c")
	g.twice("alternatives", "name", "kk-tool", "path", "/srv/kk-c", "state", "absent")
	g.fails("does not exist", "alternatives", append(link, "path", "/srv/kk-none")...)
	g.fails("missing the link", "alternatives", "name", "kk-other", "path", "/srv/kk-a")
	g.fails("must be the name or the path of an alternative", "alternatives", "name", "-x", "path", "/srv/kk-a")
}
