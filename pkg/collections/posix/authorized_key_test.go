package posix

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
)

func TestAuthorizedKeysEdit(t *testing.T) {
	const file = "# mine\nssh-rsa AAA one\nssh-dss BBB two words\necdsa-sha2-nistp521 CCC_x\n"
	for _, c := range []struct {
		name   string
		module AuthorizedKey
		want   string
	}{
		{"as they are, in another order", AuthorizedKey{Key: "ecdsa-sha2-nistp521 CCC_x\nssh-rsa AAA one"}, file},
		{"another comment moves a key to the end", AuthorizedKey{Key: "ssh-rsa AAA uno"},
			"# mine\nssh-dss BBB two words\necdsa-sha2-nistp521 CCC_x\nssh-rsa AAA uno\n"},
		{"of one key with two comments the last counts", AuthorizedKey{Key: "ssh-rsa AAA x\nssh-rsa AAA y"},
			"# mine\nssh-dss BBB two words\necdsa-sha2-nistp521 CCC_x\nssh-rsa AAA y\n"},
		{"no others", AuthorizedKey{Key: "# all\nssh-rsa AAA one", Exclusive: true}, "# mine\nssh-rsa AAA one\n"},
		{"gone, whatever its comment", AuthorizedKey{Key: "ssh-dss BBB x", State: "absent"},
			"# mine\nssh-rsa AAA one\necdsa-sha2-nistp521 CCC_x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.module.State == "" {
				c.module.State = "present"
			}
			desired, err := c.module.desired(c.module.Key)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.module.edit(file, desired); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if again := c.module.edit(c.want, desired); again != c.want {
				t.Errorf("the second time the file becomes\n%s", again)
			}
		})
	}
}

// accounts simulates a host with the user ann.
const accounts = `case "$*" in *ann*) echo ann:x:1000:1000::/home/ann:/bin/sh ;; *) exit 2 ;; esac`

func TestFetchWantsAProgram(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"getent": accounts})
	fails(t, "install curl or wget", "authorized_key", moduletest.Options{Conn: h}, "user", "ann", "key",
		"http://192.0.2.1/keys")
	h = moduletest.NewStandIns(t, map[string]string{"getent": accounts, "wget": `echo "server says no" >&2; exit 1`})
	fails(t, "fetch http://192.0.2.1/keys: server says no", "authorized_key", moduletest.Options{Conn: h}, "user", "ann",
		"key", "http://192.0.2.1/keys", "validate_certs", false)
	if calls := h.Calls(); !strings.Contains("\n"+calls, "\nwget --no-check-certificate -O ") {
		t.Errorf("ran %q", calls)
	}
}
