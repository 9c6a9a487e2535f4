package account

import "testing"

func TestAuthorizedKeysEdit(t *testing.T) {
	const file = "# mine\nssh-rsa AAA one\nssh-dss BBB two words\necdsa-sha2-nistp521 CCC_x\n"
	for _, c := range []struct {
		name   string
		module AuthorizedKey
		want   string
	}{
		{"as they are, in another order", AuthorizedKey{Key: "ecdsa-sha2-nistp521 CCC_x\nssh-rsa AAA one"}, file},
		{"another comment moves a key to the end", AuthorizedKey{Key: "ssh-rsa AAA uno"}, "# mine\nssh-dss BBB two words\necdsa-sha2-nistp521 CCC_x\nssh-rsa AAA uno\n"},
		{"of one key with two comments the last counts", AuthorizedKey{Key: "ssh-rsa AAA x\nssh-rsa AAA y"}, "# mine\nssh-dss BBB two words\necdsa-sha2-nistp521 CCC_x\nssh-rsa AAA y\n"},
		{"no others", AuthorizedKey{Key: "# all\nssh-rsa AAA one", Exclusive: true}, "# mine\nssh-rsa AAA one\n"},
		{"gone, whatever its comment", AuthorizedKey{Key: "ssh-dss BBB x", State: "absent"}, "# mine\nssh-rsa AAA one\necdsa-sha2-nistp521 CCC_x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.module.State == "" {
				c.module.State = "present"
			}
			wanted, err := c.module.wanted(c.module.Key)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.module.edit(file, wanted); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if again := c.module.edit(c.want, wanted); again != c.want {
				t.Errorf("the second time the file becomes\n%s", again)
			}
		})
	}
}
