package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

const someHash = "$6$saltsalt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIecDzlB5KiA2/jctKu9YterLp8wwnSq.qc.eoxqOmSuNp2xS0ktL3nh/"

func TestGroup(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("groupdel crew 2>/dev/null; true") })
	first, _ := g.twice("group", "name", "crew", "gid", 4100)
	if dataOf(first, "gid") != 4100 || dataOf(first, "state") != "present" || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.sees("getent group crew", "crew:x:4100:")
	g.same("group", "name", "crew")
	g.twice("group", "name", "crew", "gid", 4101)
	g.sees("getent group crew", "crew:x:4101:")
	g.fails("create group crew2", "group", "name", "crew2", "gid", 4101)
	g.twice("group", "name", "crew", "state", "absent")
	g.sees("getent group crew || echo gone", "gone")
	g.twice("group", "name", "crew", "gid_min", 4500, "gid_max", 4510)
	g.sees("getent group crew", "crew:x:4500:")
	g.sh("useradd -g crew -M crewman")
	g.fails("remove group crew", "group", "name", "crew", "state", "absent")
	g.twice("group", "name", "crew", "state", "absent", "force", true)
	g.sh("userdel crewman")
	g.fails("is not the name of a group", "group", "name", "a:b")
	g.twice("group", "name", "crewsys", "system", true)
	g.sees("[ $(getent group crewsys | cut -d: -f3) -lt 1000 ] && echo low; groupdel crewsys", "low")
}

func TestUserIsMadeChangedAndRemoved(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("userdel -rf ann 2>/dev/null; groupdel red; groupdel blue; true") })
	g.sh("groupadd red; groupadd blue")
	first, _ := g.twice("user", "name", "ann", "uid", 4200, "comment", "Ann O'Nym", "shell", "/bin/sh", "groups", "red",
		"password", someHash)
	g.sees("getent passwd ann; id -nG ann; stat -c %U /home/ann",
		"ann:x:4200:4200:Ann O'Nym:/home/ann:/bin/sh\nann red\nann")
	g.sees("getent shadow ann | cut -d: -f2", someHash)
	for key, want := range map[string]any{"uid": 4200, "group": 4200, "home": "/home/ann", "shell": "/bin/sh",
		"comment": "Ann O'Nym", "groups": "red", "state": "present"} {
		if got := dataOf(first, key); got != want {
			t.Errorf("%s is %v, not %v", key, got, want)
		}
	}
	if shown := value.Repr(first.Data) + value.Repr(first.Diff[0].After); strings.Contains(shown, "$6$") {
		t.Errorf("the hash is in the result: %s", shown)
	}
	g.twice("user", "name", "ann", "groups", []any{"blue"}, "append", true)
	g.sees("id -nG ann", "ann red blue")
	g.same("user", "name", "ann", "groups", "red", "append", true)
	g.twice("user", "name", "ann", "groups", "blue")
	g.sees("id -nG ann", "ann blue")
	g.twice("user", "name", "ann", "groups", []any{})
	g.sees("id -nG ann", "ann")
	g.twice("user", "name", "ann", "shell", "/bin/bash", "comment", "", "group", "red")
	g.sees("getent passwd ann | cut -d: -f5,7; id -ng ann", ":/bin/bash\nred")
	g.sh("touch /home/ann/kept")
	g.twice("user", "name", "ann", "home", "/srv/ann", "move_home", true)
	g.sees("ls /srv/ann/kept; ls -d /home/ann 2>/dev/null", "/srv/ann/kept")
	g.sh("rm -rf /srv/ann")
	g.twice("user", "name", "ann")
	g.sees("stat -c %U /srv/ann", "ann")
	g.twice("user", "name", "ann", "state", "absent", "remove", true)
	g.sees("getent passwd ann; ls -d /srv/ann 2>/dev/null; echo gone", "gone")
}

func TestUserPasswordAndExpiry(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("userdel -rf bob 2>/dev/null; true") })
	g.twice("user", "name", "bob", "create_home", false)
	g.sees("ls -d /home/bob 2>/dev/null || echo none", "none")
	g.same("user", "name", "bob", "create_home", false, "password", someHash, "update_password", "on_create")
	g.twice("user", "name", "bob", "create_home", false, "password", someHash)
	g.twice("user", "name", "bob", "create_home", false, "password_lock", true)
	g.sees("getent shadow bob | cut -d: -f2", "!"+someHash)
	g.same("user", "name", "bob", "create_home", false, "password", someHash)
	g.twice("user", "name", "bob", "create_home", false, "password_lock", false)
	g.sees("getent shadow bob | cut -d: -f2", someHash)
	g.twice("user", "name", "bob", "create_home", false, "expires", 1893456000)
	g.sees("getent shadow bob | cut -d: -f8", "21915")
	g.twice("user", "name", "bob", "create_home", false, "expires", -1)
	g.sees("getent shadow bob | cut -d: -f8", "")
	g.twice("user", "name", "bob", "create_home", false, "password_expire_max", 90, "password_expire_min", 0,
		"password_expire_warn", 10)
	g.sees("getent shadow bob | cut -d: -f4-6", "0:90:10")
	g.fails("Group nosuch does not exist", "user", "name", "bob", "groups", "nosuch")
	g.fails("Group nosuch does not exist", "user", "name", "bob", "group", "nosuch")
	g.fails("Group nosuch does not exist", "user", "name", "bob2", "group", "nosuch")
	g.fails("append", "user", "name", "bob", "append", true)
	g.fails("is not the name of a user", "user", "name", "-rf")
	g.fails("not a hash", "user", "name", "bob", "password", "a:b")
	if r := g.dry("user", "name", "bob", "password", "plain", "create_home", false); len(r.Warnings) != 1 {
		t.Errorf("a password that is no hash gives the warnings %q", r.Warnings)
	}
}

func TestUserSSHKey(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("userdel -rf kim 2>/dev/null; true") })
	_, second := g.twice("user", "name", "kim", "system", true, "generate_ssh_key", true, "ssh_key_type", "ed25519",
		"ssh_key_comment", "kim's key")
	g.sees("stat -c '%U %a' /home/kim/.ssh /home/kim/.ssh/id_ed25519; [ $(id -u kim) -lt 1000 ] && echo low",
		"kim 700\nkim 600\nlow")
	if key, _ := dataOf(second, "ssh_public_key").(string); !strings.HasSuffix(key, "kim's key") ||
		dataOf(second, "ssh_key_file") != "/home/kim/.ssh/id_ed25519" {
		t.Errorf("got %s", value.Repr(second.Data))
	}
}
