package e2e

import (
	"strings"
	"testing"
)

// Public keys whose private halves nobody has.
const (
	keyOne = "AAAAC3NzaC1lZDI1NTE5AAAAIJ0Hp5mVdSpIGg0mVYLdOxSoyLKf9VVRY9nP1oLPxSZk"
	keyTwo = "AAAAC3NzaC1lZDI1NTE5AAAAIB1HqGk0zV5NTr7ab3oNwGj4dE4H0iK1mMJ3v1Jw1qUO"
)

func TestAuthorizedKey(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("userdel -rf keya 2>/dev/null; rm -rf /srv/keys; true") })
	g.sh("useradd -m keya")
	one, two := "ssh-ed25519 "+keyOne+" one", `command="echo \"a b\"",no-pty ssh-ed25519 `+keyTwo
	first, _ := g.twice("authorized_key", "user", "keya", "key", one)
	file := "/home/keya/.ssh/authorized_keys"
	g.sees("cat "+file+"; stat -c '%U %G %a' "+file+" /home/keya/.ssh", one+"\nkeya keya 600\nkeya keya 700")
	if dataOf(first, "keyfile") != file || dataOf(first, "user") != "keya" || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.sh("printf '# note\\n\\n' >>" + file + "; chmod 640 " + file)
	g.twice("authorized_key", "user", "keya", "key", two+"\n\n# no key\n"+one)
	g.sees("cat "+file+"; stat -c '%U %a' "+file, one+"\n# note\n\n"+two+"\nkeya 640")
	g.twice("authorized_key", "user", "keya", "key", one, "key_options", `from="10.0.0.0/8"`, "comment", "renamed")
	g.sees("head -n 1 "+file+"; tail -n 1 "+file, "# note\n"+`from="10.0.0.0/8" ssh-ed25519 `+keyOne+" renamed")
	g.twice("authorized_key", "user", "keya", "key", one, "state", "absent")
	g.sees("cat "+file, "# note\n\n"+two)
	g.twice("authorized_key", "user", "keya", "key", one, "exclusive", true)
	g.sees("cat "+file, "# note\n\n"+one)
	g.sh("mkdir /srv/keys; touch /srv/keys/real; ln -s real /srv/keys/keya")
	g.twice("authorized_key", "user", "keya", "key", one, "path", "/srv/keys/keya", "manage_dir", false, "follow", true)
	g.sees("cat /srv/keys/real; stat -c '%U %F' /srv/keys /srv/keys/keya", one+"\nroot directory\nroot symbolic link")
	g.twice("authorized_key", "user", "keya", "key", two, "path", "/srv/keys/keya", "manage_dir", false)
	g.sees("cat /srv/keys/real; stat -c '%U %F' /srv/keys/keya", one+"\nkeya regular file")
	g.fails("invalid key specified", "authorized_key", "user", "keya", "key", "no-type "+keyOne)
	g.fails("Failed to lookup user nobody-here", "authorized_key", "user", "nobody-here", "key", one)
	g.twice("authorized_key", "user", "keya", "key", "file:///srv/keys/real", "path", "/srv/keys/copy", "manage_dir",
		false)
	g.sees("cat /srv/keys/copy", one)
	g.fails("Error getting key from: file:///srv/none", "authorized_key", "user", "keya", "key", "file:///srv/none")
	g.fails("manage_dir", "authorized_key", "user", "keya", "key", one, "path", "/srv/none/x", "manage_dir", false)
	if r := g.dry("authorized_key", "user", "nobody-here", "key", one); len(r.Warnings) != 1 {
		t.Errorf("check mode for a user who is yet to come: %+v", r)
	}
}

func TestAuthorizedKeyFromAURL(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("userdel -rf keyb 2>/dev/null; kill $(cat /run/www.pid); rm -rf /srv/www /run/www.pid; true")
	})
	g.sh("useradd -m keyb; mkdir /srv/www; echo 'ssh-ed25519 " + keyOne + " one' >/srv/www/keys")
	g.serve("/srv/www")
	g.twice("authorized_key", "user", "keyb", "key", "http://127.0.0.1:8099/keys")
	g.sees("cat /home/keyb/.ssh/authorized_keys", "ssh-ed25519 "+keyOne+" one")
	g.fails("fetch http://127.0.0.1:8099/none", "authorized_key", "user", "keyb", "key", "http://127.0.0.1:8099/none")
}

// serve has the host serve a folder on its port 8099.
func (g target) serve(folder string) {
	g.t.Helper()
	g.sh(`cat >/tmp/www.pl <<'END'
use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1:8099', Listen => 5, ReuseAddr => 1) or die;
open(my $p, '>', '/run/www.pid'); print $p $$; close $p;
while (my $c = $s->accept) {
  my ($path) = <$c> =~ m{^GET (\S+)};
  while (<$c>) { last if /^\r?$/ }
  if (open(my $f, '<', $ARGV[0] . $path)) { local $/; my $b = <$f>; print $c "HTTP/1.0 200 OK\r\nContent-Length: " . length($b) . "\r\n\r\n$b" }
  else { print $c "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n" }
  close $c;
}
END
setsid perl /tmp/www.pl ` + folder + ` </dev/null >/dev/null 2>&1 &
i=0; while [ ! -s /run/www.pid ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done; [ -s /run/www.pid ]`)
}

func TestKnownHosts(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("rm -rf /root/.ssh/known_hosts /srv/kh; true") })
	g.sh("rm -f /root/.ssh/known_hosts")
	one := "git.example.org,10.0.0.1 ssh-ed25519 " + keyOne
	first, _ := g.twice("known_hosts", "name", "git.example.org", "key", one)
	g.sees("cat /root/.ssh/known_hosts; ssh-keygen -F git.example.org -f /root/.ssh/known_hosts >/dev/null && echo found",
		one+"\nfound")
	if dataOf(first, "path") != "/root/.ssh/known_hosts" || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.twice("known_hosts", "name", "Git.Example.Org", "key", "git.example.org ssh-ed25519 "+keyTwo)
	g.sees("cat /root/.ssh/known_hosts", "git.example.org ssh-ed25519 "+keyTwo)
	g.twice("known_hosts", "host", "[box]:2222", "key", "[box]:2222 ssh-ed25519 "+keyOne, "hash_host", true, "path",
		"/srv/kh/known")
	g.sees("grep -c box /srv/kh/known; ssh-keygen -F '[box]:2222' -f /srv/kh/known | grep -c "+keyOne+
		"; stat -c %a /srv/kh/known", "0\n1\n644")
	g.sh("ssh-keygen -q -H -f /root/.ssh/known_hosts >/dev/null 2>&1; rm -f /root/.ssh/known_hosts.old")
	g.same("known_hosts", "name", "git.example.org", "key", "git.example.org ssh-ed25519 "+keyTwo)
	g.same("known_hosts", "name", "git.example.org", "key", "git.example.org ssh-ed25519 "+keyOne, "state", "absent")
	g.twice("known_hosts", "name", "git.example.org", "state", "absent")
	g.sees("wc -c </root/.ssh/known_hosts", "0")
	g.fails("No key specified when adding a host", "known_hosts", "name", "x")
	g.fails("does not match", "known_hosts", "name", "x", "key", "y ssh-ed25519 "+keyOne)
	g.fails("is not a host's key", "known_hosts", "name", "x", "key", "x "+keyOne)
	if !strings.Contains(g.sh("ls -A /srv/kh"), "known") {
		t.Error("the file is gone")
	}
}
