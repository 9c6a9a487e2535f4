package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

func TestACL(t *testing.T) {
	g := newTarget(t)
	g.needs("acl")
	t.Cleanup(func() { g.sh("rm -rf '/srv/a b'") })
	g.sh("rm -rf '/srv/a b'; mkdir -p '/srv/a b/sub'; touch '/srv/a b/sub/f'; chmod 755 '/srv/a b'")
	if g.sh("setfacl -m u:ops:r '/srv/a b/sub/f' 2>/dev/null && setfacl -b '/srv/a b/sub/f' && echo yes || true") != "yes" {
		t.Skip("the host's file system has no POSIX lists")
	}
	first, _ := g.twice("acl", "path", "/srv/a b", "etype", "user", "entity", "ops", "permissions", "rwx", "state",
		"present")
	if got := value.Repr(dataOf(first, "acl")); got != "['user::rwx', 'user:ops:rwx', 'group::r-x', 'mask::rwx', 'other::r-x']" || first.Msg != "user:ops:rwx is present" || len(first.Diff) != 1 {
		t.Errorf("got %s, %q", got, first.Msg)
	}
	g.twice("acl", "path", "/srv/a b", "entry", "default:group:dev:rx", "state", "present")
	inherited, _ := g.twice("acl", "path", "/srv/a b", "entry", "user:ops:rw", "state", "present", "default", true)
	if got := value.Repr(dataOf(inherited, "acl")); !strings.Contains(got, "'user:ops:rw-'") ||
		strings.Contains(got, "default:") {
		t.Errorf("the default entries are reported as %s", got)
	}
	g.twice("acl", "path", "/srv/a b", "entry", "user:ops", "state", "absent", "default", true)
	g.sees("getfacl -c '/srv/a b' 2>/dev/null | grep default:group:dev", "default:group:dev:r-x")
	g.twice("acl", "path", "/srv/a b", "entry", "u:ops:r", "state", "present", "recursive", true)
	g.sees("getfacl -c '/srv/a b/sub/f' 2>/dev/null | grep user:ops", "user:ops:r--")
	g.twice("acl", "path", "/srv/a b", "etype", "user", "entity", "ops", "state", "absent", "recursive", true)
	if r := g.same("acl", "path", "/srv/a b"); r.Msg != "current acl" ||
		strings.Contains(value.Repr(dataOf(r, "acl")), "user:ops") {
		t.Errorf("got %+v", r)
	}
	g.fails("Path not found", "acl", "path", "/srv/none")
	g.fails("Invalid argument", "acl", "path", "/srv/a b", "entry", "u:no-such-user:r", "state", "present")
	g.fails("permissions must be", "acl", "path", "/srv/a b", "entry", "u:ops:q", "state", "present")
}

func TestXAttr(t *testing.T) {
	g := newTarget(t)
	g.needs("attr")
	t.Cleanup(func() { g.sh("rm -f '/srv/a f'") })
	g.sh("touch '/srv/a f'")
	if g.sh("setfattr -n user.x -v 1 '/srv/a f' 2>/dev/null && setfattr -x user.x '/srv/a f' && echo yes || true") != "yes" {
		t.Skip("the host's file system has no user attributes")
	}
	first, again := g.twice("xattr", "path", "/srv/a f", "key", "origin", "value", "it's \"monday\"")
	if got := value.Repr(dataOf(first, "xattr")); got != "{}" || len(first.Diff) != 1 {
		t.Errorf("got %s", got)
	}
	if got := value.Repr(dataOf(again, "xattr")); got != `{'user.origin': 'it\'s "monday"'}` {
		t.Errorf("got %s", got)
	}
	g.twice("xattr", "path", "/srv/a f", "key", "user.origin", "value", "tuesday")
	g.sees("getfattr --only-values -n user.origin '/srv/a f'", "tuesday")
	if r := g.same("xattr", "path", "/srv/a f", "state", "keys"); value.Repr(dataOf(r, "xattr")) != "{'user.origin': ''}" {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	g.twice("xattr", "path", "/srv/a f", "key", "origin", "state", "absent")
	g.fails("path not found", "xattr", "path", "/srv/none")
	g.fails("missing: key", "xattr", "path", "/srv/a f", "state", "absent")
	g.fails("Operation not supported", "xattr", "path", "/srv/a f", "key", "x", "namespace", "system", "value", "y")
}
