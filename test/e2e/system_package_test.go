package e2e

import (
	"strings"
	"testing"
)

func TestAptInstallsAndRemoves(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("apt-get -q -y purge hello tree >/dev/null 2>&1; true") })
	g.sh("apt-get -q -y purge hello tree >/dev/null 2>&1; apt-get update -q >/dev/null 2>&1; true")
	first, second := g.twice("apt", "name", []any{"hello", "tree"}, "update_cache", true, "cache_valid_time", 86400)
	g.sees("which hello tree", "/usr/bin/hello\n/usr/bin/tree")
	if out, _ := dataOf(first, "stdout").(string); !strings.Contains(out, "2 newly installed") ||
		dataOf(first, "rc") != 0 {
		t.Errorf("got %+v", first)
	}
	if len(first.Diff) != 1 || !strings.Contains(first.Diff[0].Prepared, "hello") {
		t.Errorf("diff %+v", first.Diff)
	}
	if when, _ := dataOf(second, "cache_update_time").(int); when < 1_500_000_000 ||
		dataOf(second, "cache_updated") != false {
		t.Errorf("got cache_update_time %v, cache_updated %v", when, dataOf(second, "cache_updated"))
	}
	g.same("apt", "name", "hello", "state", "latest")
	g.same("package", "name", "hello")
	version := g.sh("dpkg-query -W -f '${Version}' hello")
	g.same("apt", "name", "hello="+version)
	g.same("apt", "name", "hello="+version[:2]+"*")
	g.fails("Version '0.0-none' for 'hello' was not found", "apt", "name", "hello=0.0-none")
	g.twice("package", "name", "tree", "state", "absent")
	g.sees("command -v tree || echo gone", "gone")
	g.twice("apt", "name", "hel?o*,hello", "state", "absent", "purge", true)
	g.sees("command -v hello || echo gone", "gone")
	g.fails("Unable to locate package no-such-package-here", "apt", "name", "no-such-package-here")
	g.fails("is not the name of a package", "apt", "name", "--force-yes")
	g.fails("one of the following is required", "apt")
	g.fails("neither dnf nor yum is installed", "dnf", "name", "x")
	g.fails("zypper is not installed", "zypper", "name", "x")
	g.fails("apk is not installed", "apk", "name", "x")
	g.same("apt", "state", "fixed")
}

func TestAptDebFileAndServicesKeptDown(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("apt-get -q -y purge hello >/dev/null 2>&1; rm -rf /tmp/deb; true") })
	g.sh("apt-get update -q >/dev/null 2>&1; apt-get -q -y purge hello >/dev/null 2>&1; mkdir -p /tmp/deb && chmod 777 /tmp/deb && cd /tmp/deb && apt-get download -q hello >/dev/null 2>&1; mv hello_*.deb 'hello it.deb'")
	g.twice("apt", "deb", "/tmp/deb/hello it.deb", "policy_rc_d", 101)
	g.sees("command -v hello; ls /usr/sbin/policy-rc.d 2>/dev/null", "/usr/bin/hello")
	g.fails("package file", "apt", "deb", "/tmp/deb/none.deb")
	g.sh("apt-get -q -y purge hello >/dev/null 2>&1; cp '/tmp/deb/hello it.deb' /tmp/deb/hello.deb")
	g.serve("/tmp/deb")
	t.Cleanup(func() { g.sh("kill $(cat /run/www.pid); rm -f /run/www.pid") })
	g.twice("apt", "deb", "http://127.0.0.1:8099/hello.deb")
	g.fails("fetch http://127.0.0.1:8099/none.deb", "apt", "deb", "http://127.0.0.1:8099/none.deb")
}

func TestAptWaitsForTheLock(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("rm -f /run/lock-held; apt-get -q -y purge hello >/dev/null 2>&1; true") })
	g.sh(`apt-get -q -y purge hello >/dev/null 2>&1
cat >/tmp/hold.pl <<'END'
use Fcntl;
open(my $f, '>', '/var/lib/dpkg/lock-frontend') or die;
my $lock = pack('s s x![l!] l! l! i x![l!]', F_WRLCK, 0, 0, 0, 0);
fcntl($f, F_SETLK, $lock) or die "lock: $!";
open(my $h, '>', '/run/lock-held'); close $h;
sleep 1 while -e '/run/lock-held';
END
setsid perl /tmp/hold.pl </dev/null >/dev/null 2>&1 &
i=0; while [ ! -e /run/lock-held ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done; [ -e /run/lock-held ]`)
	g.fails("lock", "apt", "name", "hello", "lock_timeout", 1)
	g.dry("apt", "name", "hello")
	g.sh("(sleep 1; rm -f /run/lock-held) </dev/null >/dev/null 2>&1 &")
	if r := g.run("apt", "name", "hello"); !r.Changed {
		t.Errorf("got %+v", r)
	}
}
