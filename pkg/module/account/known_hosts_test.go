package account

import (
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// What is registered tells the file before and after, whether there is a
// change or not, and without --diff.
func TestKnownHostsTellsTheDifference(t *testing.T) {
	const key = "example.org ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC9"
	file := t.TempDir() + "/known_hosts"
	if err := os.WriteFile(file, []byte("# first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := value.NewDict("name", "example.org", "key", key, "path", file)
	o := moduletest.Options{Conn: moduletest.Shell()}
	for i, before := range []string{"# first\n", "# first\n" + key + "\n"} {
		r := moduletest.Run(t, spec(t, "known_hosts"), a, o)
		diff, _ := moduletest.Field(r, "diff").(*value.Dict)
		if diff == nil || diff.String("before") != before || diff.String("after") != "# first\n"+key+"\n" ||
			diff.String("after_header") != file {
			t.Errorf("run %d: the difference is %s", i, value.Repr(diff))
		}
		if r.Changed != (i == 0) {
			t.Errorf("run %d: changed is %v", i, r.Changed)
		}
	}
	for name, want := range map[string]string{
		"example.org,example.com": "Comma separated list of names is not supported.",
		"example.com":             "Host parameter does not match hashed host field in supplied key",
	} {
		a := value.NewDict("name", name, "key", key, "path", file)
		if r, err := moduletest.Try(t, spec(t, "known_hosts"), a, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}
