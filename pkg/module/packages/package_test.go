package packages

import (
	"maps"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// rpmStub has the package "here" installed.
const rpmStub = `case "$*" in *here*) exit 0 ;; esac; exit 1`

const dnfStub = `case "$*" in
*same*) echo "Nothing to do." ;;
*none*) echo "No match for argument: none"; echo "Error: Unable to find a match: none" >&2; exit 1 ;;
*--assumeno*) echo "Operation aborted."; exit 1 ;;
*broken*) echo "Error: Unable to find a match: broken" >&2; exit 1 ;;
*remove*) printf 'Removed:\n  here-1-1.noarch   \n\nComplete!\n' ;;
*) printf 'Installed:\n  gone-2-1.noarch    dep-1-1.x86_64\n\nComplete!\n' ;;
esac`

func TestDnf(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"dnf": dnfStub, "rpm": rpmStub})
	cases := []struct {
		args    []any
		changed bool
		calls   string // of dnf, the last one
		results string
	}{
		{[]any{"name", "here"}, false, "", "[]"},
		{[]any{"name", "here,gone"}, true, "dnf -y install -- gone",
			"['Installed: gone-2-1.noarch', 'Installed: dep-1-1.x86_64']"},
		{[]any{"name", "same"}, false, "dnf -y install -- same", "[]"},
		{[]any{"name", "@core", "allow_downgrade", true}, true, "dnf -y install --setopt=allow_downgrade=1 -- @core",
			"['Installed: gone-2-1.noarch', 'Installed: dep-1-1.x86_64']"},
		{[]any{"name", "gone", "state", "removed"}, false, "", "[]"},
		{[]any{"name", []any{"here", "gone"}, "state", "absent"}, true, "dnf -y remove -- here",
			"['Removed: here-1-1.noarch']"},
		{[]any{"name", "here", "state", "absent", "autoremove", true}, true, "dnf -y autoremove -- here",
			"['Removed: here-1-1.noarch']"},
		{[]any{"name", "here", "state", "latest"}, true, "dnf -y upgrade -- here",
			"['Installed: gone-2-1.noarch', 'Installed: dep-1-1.x86_64']"},
		{[]any{"name", "gone", "enablerepo", "a,b", "disablerepo", "*", "exclude", "k*", "disable_gpg_check", true, "nobest",
			true, "allowerasing", true, "installroot", "/r", "download_only", true},
			true, "dnf --downloadonly --installroot=/r --allowerasing --nobest --nogpgcheck --exclude=k* --disablerepo=* --enablerepo=b --enablerepo=a -y install -- gone", ""},
		{[]any{"autoremove", true}, true, "dnf -y autoremove", ""},
		{[]any{"name", "here", "update_cache", true}, false, "dnf -y makecache", ""},
	}
	for _, c := range cases {
		r := run(t, "dnf", moduletest.Options{Conn: h}, c.args...)
		var dnf string
		for _, line := range strings.Split(h.Calls(), "\n") {
			if strings.HasPrefix(line, "dnf") {
				dnf = line
			}
		}
		want := c.calls
		if i := strings.Index(want, " -y "); i > 4 { // options come after -y
			want = "dnf -y" + want[3:i] + want[i+3:]
		}
		if r.Failed || r.Changed != c.changed || dnf != want {
			t.Errorf("%v: changed %v, ran %q, want %v, %q (%+v)", c.args, r.Changed, dnf, c.changed, want, r)
		}
		if got := value.Repr(moduletest.Field(r, "results")); c.results != "" && got != c.results {
			t.Errorf("%v: results %s, want %s", c.args, got, c.results)
		}
	}
	fails(t, "Unable to find a match: broken", "dnf", moduletest.Options{Conn: h}, "name", "broken")
	fails(t, "No package none available.", "dnf", moduletest.Options{Conn: h}, "name", "none")
	if r := run(t, "yum", moduletest.Options{Conn: h}); r.Changed || r.Msg != "Nothing to do" {
		t.Errorf("without a name: %+v", r)
	}
}

func TestDnfLists(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{
		"rpm": `case "$*" in *none*) exit 0 ;; esac; printf 'bash|0|5.1|6.el9|x86_64|@System\ngpg-pubkey|0|1|2|(none)|@System\n'`,
		"dnf": `case "$*" in
*repolist*) printf 'repo id    repo name\nbaseos     BaseOS - x\nextras     Extras\n' ;;
*broken*) echo "Error: no such repository" >&2; exit 1 ;;
*none*) ;;
*) printf 'bash|0|5.2|1.el9|x86_64|baseos\n\n' ;;
esac`,
	})
	const (
		installed = `{'name': 'bash', 'epoch': '0', 'version': '5.1', 'release': '6.el9', 'arch': 'x86_64', 'repo': '@System', 'envra': '0:bash-5.1-6.el9.x86_64', 'nevra': '0:bash-5.1-6.el9.x86_64', 'yumstate': 'installed'}`
		available = `{'name': 'bash', 'epoch': '0', 'version': '5.2', 'release': '1.el9', 'arch': 'x86_64', 'repo': 'baseos', 'envra': '0:bash-5.2-1.el9.x86_64', 'nevra': '0:bash-5.2-1.el9.x86_64', 'yumstate': 'available'}`
	)
	const format = ` --qf %{name}|%{epoch}|%{version}|%{release}|%{arch}|%{repoid}\n`
	for _, c := range []struct{ list, results, call string }{
		{"installed", "[" + installed + "]", ""},
		{"available", "[" + available + "]", "dnf -y -q repoquery --available" + format},
		{"updates", "[" + available + "]", "dnf -y -q repoquery --upgrades" + format},
		{"bash*", "[" + installed + ", " + available + "]", "dnf -y -q repoquery --available" + format + " -- bash*"},
		{"none", "[]", "dnf -y -q repoquery --available" + format + " -- none"},
		{"repos", "[{'repoid': 'baseos', 'state': 'enabled'}, {'repoid': 'extras', 'state': 'enabled'}]",
			"dnf -y -q repolist --enabled"},
	} {
		for _, check := range []bool{false, true} {
			r := run(t, "dnf", moduletest.Options{Conn: h, Check: check}, "list", c.list)
			if got := value.Repr(moduletest.Field(r, "results")); got != c.results || r.Changed || r.Failed {
				t.Errorf("%s: got %s, want %s", c.list, got, c.results)
			}
			if calls := h.Calls(); !strings.HasSuffix(calls, c.call) || c.call == "" && strings.Contains(calls, "dnf") {
				t.Errorf("%s: ran %q, want %q", c.list, calls, c.call)
			}
		}
	}
	run(t, "yum", moduletest.Options{Conn: h}, "list", "repos", "enablerepo", "extras", "update_cache", true)
	if calls := h.Calls(); !strings.Contains(calls, "--enablerepo=extras") || !strings.Contains(calls, "makecache") {
		t.Errorf("ran %q", calls)
	}
	fails(t, "no such repository", "dnf", moduletest.Options{Conn: h}, "list", "broken")
	fails(t, "is neither a dnf list", "dnf", moduletest.Options{Conn: h}, "list", "--all")
	fails(t, "mutually exclusive: name|list", "dnf", moduletest.Options{Conn: h}, "list", "repos", "name", "x")
}

func TestDnfInCheckMode(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"yum": dnfStub, "rpm": rpmStub})
	for _, c := range []struct {
		args    []any
		changed bool
	}{
		{[]any{"name", "gone"}, true}, {[]any{"name", "here"}, false}, {[]any{"name", "here", "state", "absent"}, true},
		{[]any{"name", "here", "state", "latest"}, true}, {[]any{"name", "gone", "state", "latest"}, true},
		{[]any{"name", "here-same", "state", "latest"}, false},
		{[]any{"name", "gone", "state", "latest", "update_only", true}, false},
	} {
		r := run(t, "dnf", moduletest.Options{Conn: h, Check: true}, c.args...)
		if r.Failed || r.Changed != c.changed {
			t.Errorf("%v: %+v", c.args, r)
		}
		if calls := h.Calls(); strings.Contains(calls, "-y") {
			t.Errorf("%v in check mode ran %q", c.args, calls)
		}
	}
	fails(t, "No package none available.", "dnf", moduletest.Options{Conn: h, Check: true}, "name", "none")
}

func TestPackagePicksTheManager(t *testing.T) {
	for tool, want := range map[string]string{"dnf": "dnf -y install -- gone", "yum": "yum -y install -- gone",
		"zypper": "zypper --quiet --non-interactive --xmlout install --type package --auto-agree-with-licenses --no-recommends -- +gone", "apk": "apk add gone"} {
		h := moduletest.NewStandIns(t, map[string]string{tool: `case "$*" in info*) exit 1 ;; *xmlout*) echo '<to-install><solvable name="gone"/></to-install>'; exit ;; esac; echo Installing`, "rpm": rpmStub})
		r := run(t, "package", moduletest.Options{Conn: h}, "name", "gone")
		calls := strings.Split(h.Calls(), "\n")
		if last := calls[len(calls)-1]; !r.Changed || last != want {
			t.Errorf("with %s: ran %q, want %q (%+v)", tool, last, want, r)
		}
	}
	fails(t, "none of apt-get, dnf, yum, zypper and apk", "package",
		moduletest.Options{Conn: moduletest.NewStandIns(t, nil)}, "name", "x")
}

func TestPackagePassesOptionsToTheManager(t *testing.T) {
	apt := moduletest.NewStandIns(t, map[string]string{"apt-get": aptGet, "dpkg-query": "exit 1"})
	run(t, "package", moduletest.Options{Conn: apt}, "name", "gone", "allow_downgrade", true, "default_release", "stable",
		"install_recommends", false, "enablerepo", "epel")
	dnf := moduletest.NewStandIns(t, map[string]string{"dnf": `echo Installing`, "rpm": "exit 1"})
	run(t, "package", moduletest.Options{Conn: dnf}, "name", "gone", "allow_downgrade", true, "enablerepo", "epel",
		"cache_valid_time", 0)
	for _, c := range []struct {
		h    *moduletest.StandIns
		want []string
	}{
		{apt, []string{"--allow-downgrades", "-t stable", "Install-Recommends=no"}},
		{dnf, []string{"--enablerepo=epel"}},
	} {
		calls := strings.Split(c.h.Calls(), "\n")
		for _, w := range c.want {
			if last := calls[len(calls)-1]; !strings.Contains(last, w) {
				t.Errorf("ran %q, want %q in it", last, w)
			}
		}
	}
	fails(t, "one of the following is required", "package", moduletest.Options{Conn: apt})
}

// aptGet pretends that the package "gone" can be installed.
const aptGet = `case "$*" in
*update*) echo Hit ;;
*gone*) printf 'Reading package lists...\nReading state information...\nThe following NEW packages will be installed:\n  gone\n0 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.\nInst gone\n' ;;
*busy*) echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1" >&2; exit 100 ;;
*) echo "0 upgraded, 0 newly installed, 0 to remove and 4 not upgraded." ;;
esac`

func TestAptOptions(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"apt-get": aptGet,
		"dpkg-query": `case "$*" in *here*) echo "ii  1.2-3" ;; *) exit 1 ;; esac`})
	const common = "-q -y"
	for _, c := range []struct {
		args    []any
		changed bool
		want    []string // in the last call of apt-get
	}{
		{[]any{"name", "here"}, false, nil},
		{[]any{"name", "here=1.2-*"}, false, nil},
		{[]any{"name", "here=1.3", "allow_downgrade", true}, false, []string{"--allow-downgrades", "install -- here=1.3"}},
		{[]any{"name", "gone"}, true, []string{"-o DPkg::Lock::Timeout=60", "Dpkg::Options::=--force-confdef",
			"Dpkg::Options::=--force-confold", "install -- gone"}},
		{[]any{"name", "gone", "dpkg_options", "force-confnew", "default_release", "stable", "install_recommends", false,
			"allow_unauthenticated", true, "allow_change_held_packages", true, "lock_timeout", 5},
			true, []string{"Timeout=5", "--force-confnew", "-t stable", "APT::Install-Recommends=no", "--allow-unauthenticated",
				"--allow-change-held-packages"}},
		{[]any{"name", "gone", "install_recommends", true, "force", true, "only_upgrade", true, "state", "latest"}, true,
			[]string{"Install-Recommends=yes", "--allow-remove-essential", "--only-upgrade"}},
		{[]any{"name", "here", "state", "absent", "purge", true, "autoremove", true}, false,
			[]string{"--auto-remove", "purge -- here"}},
		{[]any{"name", "gone", "state", "build-dep"}, true, []string{"build-dep -- gone"}},
		{[]any{"upgrade", "dist"}, false, []string{"dist-upgrade"}},
		{[]any{"upgrade", true}, false, []string{"upgrade --with-new-pkgs"}},
		{[]any{"autoremove", true}, false, []string{"autoremove"}},
		{[]any{"name", "*", "state", "latest"}, false, []string{"upgrade --with-new-pkgs"}},
	} {
		r := run(t, "apt", moduletest.Options{Conn: h, Diff: true}, c.args...)
		calls := strings.Split(h.Calls(), "\n")
		last := calls[len(calls)-1]
		for _, w := range append([]string{common}, c.want...) {
			if c.want != nil && !strings.Contains(last, w) {
				t.Errorf("%v ran %q, want %q in it", c.args, last, w)
			}
		}
		if r.Failed || r.Changed != c.changed || c.want == nil && strings.HasPrefix(last, "apt-get") {
			t.Errorf("%v: ran %q: %+v", c.args, last, r)
		}
	}
	r := run(t, "apt", moduletest.Options{Conn: h, Diff: true, Check: true}, "name", "gone")
	if calls := h.Calls(); !strings.Contains(calls, " -s ") || len(r.Diff) != 1 ||
		r.Diff[0].Prepared != "The following NEW packages will be installed:\n  gone\n0 upgraded, 1 newly installed, 0 to remove and 0 not upgraded." {
		t.Errorf("check mode ran %q: %+v", calls, r)
	}
	fails(t, "Could not get lock", "apt", moduletest.Options{Conn: h}, "name", "busy", "lock_timeout", 1)
	if n := strings.Count(h.Calls(), "apt-get"); n != 2 {
		t.Errorf("apt-get was tried %d times in a second, want 2", n)
	}
	fails(t, "mutually exclusive", "apt", moduletest.Options{Conn: h}, "name", "x", "deb", "/y")
	fails(t, "at least 0", "apt", moduletest.Options{Conn: h}, "name", "x", "lock_timeout", -1)
	fails(t, "a package name is empty", "apt", moduletest.Options{Conn: h}, "name", []any{""})
}

func TestAptTakesVersionsAndSaysWhatIsMissing(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{
		"dpkg-query": `case "$*" in *here*) echo "ii  1.2-3" ;; *) exit 1 ;; esac`,
		"dpkg":       `[ "$2" != 1.2-3 ] || [ "$4" = 1.0 ]`, // is the version new enough?
		"apt-cache":  `case "$*" in *none*) ;; *) printf 'x:\n  Installed: (none)\n  Candidate: 2.0-1\n' ;; esac`,
		"apt-get": `case "$*" in
*gone=*) echo "E: Version '9' for 'gone' was not found" >&2; exit 100 ;;
*gone*) echo "E: Unable to locate package gone" >&2; exit 100 ;;
*shadow*) echo "E: Package 'shadow' has no installation candidate" >&2; exit 100 ;;
*) echo "1 upgraded, 0 newly installed, 0 to remove and 0 not upgraded." ;;
esac`,
	})
	o := moduletest.Options{Conn: h}
	if r := run(t, "apt", o, "name", "here>=1.0"); r.Changed || strings.Contains(h.Calls(), "apt-get") {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "apt", o, "name", "here>=2.0"); !r.Changed || !strings.HasSuffix(h.Calls(), "install -- here=2.0-1") {
		t.Errorf("got %+v", r)
	}
	fails(t, "no available installation candidate for none>=1.0", "apt", o, "name", "none>=1.0")
	fails(t, "No package matching 'gone' is available: E: Unable", "apt", o, "name", "gone")
	fails(t, "no available installation candidate for gone=9: E: Version", "apt", o, "name", "gone=9")
	fails(t, "no available installation candidate for shadow: E: Package", "apt", o, "name", "shadow")
	if r := run(t, "apt", o, "upgrade", "dist"); r.Msg == "" || r.Msg != moduletest.Field(r, "stdout") {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "apt", o, "state", "fixed", "name", []any{"here", "new"}); !strings.HasSuffix(h.Calls(),
		"install --fix-broken -- new") {
		t.Errorf("ran %q: %+v", h.Calls(), r)
	}
}

func TestAptOrigins(t *testing.T) {
	got := aptOrigins(`Package files:
 100 /var/lib/dpkg/status
     release a=now
 500 http://deb.example.com/debian stable/main amd64 Packages
     release v=12,o=Debian,a=stable,n=bookworm,l=Debian,c=main,b=amd64
     origin deb.example.com
 -10 https://repo.example.com ./ Packages
     release o=Some One,l=x
Pinned packages:
bash:
  Installed: 5.1
  Candidate: 5.2
  Version table:
     5.2 500
        500 http://deb.example.com/debian stable/main amd64 Packages
 *** 5.1 100
        100 /var/lib/dpkg/status
tar:
  Version table:
 *** 1.34 500
        500 http://deb.example.com/debian stable/main amd64 Packages
        100 /var/lib/dpkg/status
     1.30 500
        -10 https://repo.example.com ./ Packages
libc6:i386:
  Version table:
 *** 2 -10
        -10 https://repo.example.com ./ Packages
        100 /var/lib/dpkg/status
`)
	want := map[string]string{"bash": "", "tar": "Debian", "libc6:i386": "Some One"}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPackageFactsOfOtherManagers(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{
		"rpm": `printf 'bash\t5.1\t6.el9\t(none)\tx86_64\nkernel\t5\t1\t(none)\tx86_64\nkernel\t5\t2\t7\tx86_64\ngpg-pubkey\t1\t2\t(none)\t(none)\n'`,
		"apk": `printf 'musl-1.2.4-r2\nca-certificates-bundle-20230506-r0\n'`,
	})
	o := moduletest.Options{Conn: h}
	const rpms = `{'packages': {'bash': [{'name': 'bash', 'version': '5.1', 'release': '6.el9', 'epoch': None, 'arch': 'x86_64', 'source': 'rpm'}], ` +
		`'kernel': [{'name': 'kernel', 'version': '5', 'release': '1', 'epoch': None, 'arch': 'x86_64', 'source': 'rpm'}, {'name': 'kernel', 'version': '5', 'release': '2', 'epoch': 7, 'arch': 'x86_64', 'source': 'rpm'}], ` +
		`'gpg-pubkey': [{'name': 'gpg-pubkey', 'version': '1', 'release': '2', 'epoch': None, 'arch': None, 'source': 'rpm'}]}}`
	const apks = `'musl': [{'name': 'musl', 'version': '1.2.4', 'release': 'r2', 'source': 'apk'}], ` +
		`'ca-certificates-bundle': [{'name': 'ca-certificates-bundle', 'version': '20230506', 'release': 'r0', 'source': 'apk'}]}}`
	for want, args := range map[string][]any{
		rpms:                    {"manager", "dnf,zypper"},
		"{'packages': {" + apks: {"manager", "apk"},
		strings.TrimSuffix(rpms, "}}") + ", " + apks: {"strategy", "all"},
	} {
		if got := value.Repr(run(t, "package_facts", o, args...).Facts); got != want {
			t.Errorf("%v: got %s\nwant %s", args, got, want)
		}
	}
}

func TestFurtherArgumentsOfApt(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"sleep": ":", "dpkg-query": "exit 1", "apt-get": `case "$*" in
*update*) echo "E: no way" >&2; exit 100 ;;
*autoclean*) echo "Del gone 1.0 [1 B]" ;;
*) echo "0 upgraded, 0 newly installed, 0 to remove and 4 not upgraded." ;;
esac`})
	o := moduletest.Options{Conn: h}
	fails(t, "Failed to update apt cache: E: no way", "apt", o, "update_cache", true, "update_cache_retries", 3,
		"update_cache_retry_max_delay", 2)
	if calls := h.Calls(); calls != "apt-get update -q\nsleep 1\napt-get update -q\nsleep 2\napt-get update -q\nsleep 2\napt-get update -q" {
		t.Errorf("ran %q", calls)
	}
	if r := run(t, "apt", o, "autoclean", true); !r.Changed || h.Calls() != "apt-get -q -y autoclean" {
		t.Errorf("got %+v", r)
	}
	run(t, "apt", o, "name", "gone", "fail_on_autoremove", true, "force_apt_get", true)
	if calls := h.Calls(); !strings.Contains(calls, "--no-remove") {
		t.Errorf("ran %q", calls)
	}
}

func TestFurtherArgumentsOfDnf(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"dnf": "echo Installing", "rpm": "exit 1"})
	o := moduletest.Options{Conn: h}
	run(t, "dnf", o, "name", "gone", "conf_file", "/c", "releasever", "9", "skip_broken", true, "security", true, "bugfix",
		true, "enable_plugin", "a,b",
		"disable_plugin", "c", "disable_excludes", "all", "sslverify", false, "install_weak_deps", false, "download_dir",
		"/d", "cacheonly", true)
	calls := h.Calls()
	for _, w := range []string{"-c /c", "--releasever=9", "--skip-broken", "--security", "--bugfix", "--enableplugin=a",
		"--enableplugin=b", "--disableplugin=c",
		"--disableexcludes=all", "--setopt=sslverify=0", "--setopt=install_weak_deps=0", "--downloaddir=/d", " -C "} {
		if !strings.Contains(calls, w) {
			t.Errorf("ran %q, want %q in it", calls, w)
		}
	}
	h = moduletest.NewStandIns(t, map[string]string{"dnf": dnfStub, "rpm": rpmStub})
	run(t, "dnf", moduletest.Options{Conn: h}, "name", "gone,here", "state", "latest", "update_only", true)
	if calls := h.Calls(); strings.Contains(calls, " install ") || !strings.Contains(calls, " upgrade -- here") {
		t.Errorf("ran %q", calls)
	}
}
