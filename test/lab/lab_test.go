package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// crashVariable makes the test binary bring up the lab it names and crash in its tests.
const crashVariable = "KK_LAB_TEST_CRASH"

func TestMain(m *testing.M) {
	if name := os.Getenv(crashVariable); name != "" || os.Getenv(guardVariable) != "" {
		os.Exit(RunTests(func() int { panic("a test crashes") }, Options{Name: name}, func(*Lab) {}))
	}
	os.Exit(m.Run())
}

// testLab is a lab's name that no other process uses. The lab is gone after the test.
func testLab(t *testing.T, suffix string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("brings up a lab, and -short is given")
	}
	if err := Usable(); err != nil {
		t.Skip("cannot bring up a lab: " + err.Error())
	}
	name := NameOfTests("lab") + "-" + suffix
	t.Cleanup(func() {
		if err := Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return name
}

func up(t *testing.T, o Options) *Lab {
	t.Helper()
	l, err := Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// traces lists what the machine has of the lab.
func traces(t *testing.T, s state) []string {
	t.Helper()
	var found []string
	for _, command := range []string{
		"ip -o link", "ip netns", "iptables -S", "iptables -t nat -S", "cat /proc/self/mountinfo",
		"find /sys/fs/cgroup -maxdepth 2",
	} {
		words := strings.Fields(command)
		out, err := output(t.Context(), nil, words[0], words[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			if strings.Contains(line, s.label()) || strings.Contains(line, s.subnet()) || strings.Contains(line, s.dir()) {
				found = append(found, command+": "+strings.TrimSpace(line))
			}
		}
	}
	if _, err := os.Stat(s.dir()); err == nil {
		found = append(found, "folder: "+s.dir())
	}
	for _, h := range fromState(s, nil).Hosts {
		pids, err := h.pids()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			found = append(found, fmt.Sprintf("process: %d", pid))
		}
	}
	return found
}

func TestDownLeavesNothing(t *testing.T) {
	l := up(t, Options{Name: testLab(t, "down"), N: 2})
	if len(traces(t, l.state)) < 10 {
		t.Fatalf("a running lab shows as only %q: does the test look in the right places?", traces(t, l.state))
	}
	unlock, err := lock() // or another lab takes the number before the look
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := l.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, l.state); len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

func TestUpMendsWhatIsBroken(t *testing.T) {
	o := Options{Name: testLab(t, "repair"), N: 2}
	l := up(t, o)
	boot := func(l *Lab, i int) string {
		t.Helper()
		id, err := l.Exec(t.Context(), i, "stat -c %Y /proc/1; cat /etc/machine-id")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	left, cut := boot(l, 0), boot(l, 1)
	if err := l.Hosts[1].powerOff(); err != nil { // its network stays
		t.Fatal(err)
	}
	if err := run(t.Context(), "ip", "link", "delete", l.Hosts[1].veth()); err != nil {
		t.Fatal(err)
	}
	l = up(t, o)
	if got := boot(l, 0); got != left {
		t.Errorf("the running host changed: %q, was %q", got, left)
	}
	_, id, _ := strings.Cut(cut, "\n")
	if got := boot(l, 1); !strings.HasSuffix(got, id) {
		t.Errorf("the stopped host lost its identity: %q, was %q", got, cut)
	}
}

func TestUpWithFewerHostsRemovesTheRest(t *testing.T) {
	o := Options{Name: testLab(t, "shrink"), N: 2}
	up(t, o)
	o.N = 1
	up(t, o)
	l, err := Open(o.Name)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Hosts) != 1 {
		t.Errorf("%d hosts, want 1", len(l.Hosts))
	}
	second := fromState(state{Name: l.Name, Number: l.state.Number, N: 2}, nil).Hosts[1]
	if linkExists(second.veth()) || second.Running() {
		t.Error("the second host is still there")
	}
	inventory, err := os.ReadFile(l.Inventory())
	if err != nil || strings.Contains(string(inventory), "node2") {
		t.Errorf("inventory %q, %v", inventory, err)
	}
}

func TestLabGoesAwayWhenTestsCrash(t *testing.T) {
	name := testLab(t, "crash")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashVariable+"="+name)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "a test crashes") {
		t.Fatalf("the tests did not crash: %v\n%s", err, out)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		labs, err := List()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(labs, name) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the lab is still there: %q", labs)
		}
	}
}

func TestLabsOfTestsThatAreNoMoreAreSweptAway(t *testing.T) {
	ours := up(t, Options{Name: testLab(t, "ours")})
	gone := "lab-pid99999999-gone" // larger than any process' number
	t.Cleanup(func() { Down(context.Background(), gone) })
	up(t, Options{Name: gone})
	if err := Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	labs, err := List()
	if err != nil || slices.Contains(labs, gone) || !slices.Contains(labs, ours.Name) {
		t.Errorf("labs after sweeping: %q, %v", labs, err)
	}
	if !ours.Hosts[0].Running() {
		t.Error("a host of a lab in use was switched off")
	}
}

func TestSecretsOfTheLabAreRootsOnly(t *testing.T) {
	l := up(t, Options{Name: testLab(t, "modes")})
	for path, want := range map[string]os.FileMode{
		l.Dir():                            0o700,
		l.PasswordFile():                   0o600,
		l.Hosts[0].Key:                     0o600,
		filepath.Join(l.Dir(), "lab.json"): 0o600,
		filepath.Join(l.Dir(), "hosts/node1/console.log"): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
}

func TestUpRefusesBadOptions(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Name: "../etc"}, `lab name "../etc"`},
		{Options{Name: strings.Repeat("x", 50)}, "at most 41"},
		{Options{N: -1}, "1 to 100 hosts"},
		{Options{N: MaxHosts + 1}, "1 to 100 hosts"},
	} {
		if _, err := Up(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.options, err, c.want)
		}
	}
	if err := Down(t.Context(), ""); err == nil {
		t.Error("a lab without a name was taken down")
	}
}

func TestOpenOfALabThatIsNotThere(t *testing.T) {
	if _, err := Open("never-made"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one that says it does not exist", err)
	}
}
