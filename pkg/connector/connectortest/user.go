package connectortest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"kubekey/pkg/connector"
)

// NewUser creates a temporary user on this machine with a password, a login shell, and a
// sudoers rule ("" for none) in which %s is the user's name. The test is skipped where that
// is not possible; the user is removed at the end of the test.
func NewUser(t testing.TB, password, loginShell, rule string) string {
	t.Helper()
	for _, program := range []string{"useradd", "userdel", "chpasswd", "sudo", loginShell} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: this test makes a user that needs it", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("making a user needs root")
	}
	name := "kkt" + connector.NewMark()[:10]
	run(t, "", "useradd", "-m", "-s", loginShell, name)
	sudoers := "/etc/sudoers.d/" + name
	t.Cleanup(func() {
		os.Remove(sudoers)
		// Fails harmlessly on processes that the test left running; useradd created nothing else.
		_ = exec.Command("userdel", "-r", "-f", name).Run()
	})
	run(t, name+":"+password, "chpasswd")
	if rule != "" {
		if err := os.WriteFile(sudoers, []byte(fmt.Sprintf(rule, name)+"\n"), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func run(t testing.TB, stdin, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
}
