package rendered

import (
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// checker is a program that says whether settings of its own are right.
type checker struct {
	program string
	file    *regexp.Regexp                              // names of the files that are its settings
	minor   string                                      // the release whose settings it judges; all when empty
	find    func() (string, error)                      // where the program is
	args    []string                                    // before the name of the file
	adapt   func(t *testing.T, dir, text string) string // what the machine of the test does not have; nil for nothing
}

func checkers() []checker {
	return []checker{
		{program: "kubeadm", file: regexp.MustCompile(`^kubeadm.*\.yaml$`), minor: builtMinor, find: builtKubeadm,
			args: []string{"config", "validate", "--config"}},
		{program: "haproxy", file: regexp.MustCompile(`^haproxy\.cfg$`), find: installed("haproxy"),
			args: []string{"-c", "-f"}, adapt: withAuthority},
		{program: "keepalived", file: regexp.MustCompile(`^keepalived\.conf$`), find: installed("keepalived"),
			args: []string{"-t", "-f"}, adapt: withInterface},
	}
}

// origin is where settings are from.
type origin struct {
	path     string
	cluster  cluster
	families map[string]bool // that clusters with these settings have
}

// keep keeps a file that a program judges: one of clusters that it is the same in.
func (s *findings) keep(c cluster, f simulated.File) {
	for _, j := range checkers() {
		if !j.file.MatchString(path.Base(f.Path)) || j.minor != "" && j.minor != c["minor"] {
			continue
		}
		s.mu.Lock()
		if s.settings[j.program] == nil {
			s.settings[j.program] = map[string]origin{}
		}
		from, known := s.settings[j.program][f.Content]
		if !known {
			from = origin{f.Path, c, map[string]bool{}}
			s.settings[j.program][f.Content] = from
		}
		from.families[c["family"]] = true
		s.mu.Unlock()
	}
}

// checkSettings shows a program its settings of all clusters; each family of
// addresses is among them.
func (s *findings) checkSettings(t *testing.T, j checker) {
	for _, family := range []string{"v4", "v6", "dual"} {
		found := false
		for _, from := range s.settings[j.program] {
			found = found || from.families[family]
		}
		if !found {
			t.Errorf("no cluster of the family %s has settings of %s", family, j.program)
		}
	}
	program, err := j.find()
	if err != nil {
		t.Skipf("no %s: %v", j.program, err)
	}
	for text, from := range s.settings[j.program] {
		dir := t.TempDir()
		name := filepath.Join(dir, path.Base(from.path))
		if j.adapt != nil {
			text = j.adapt(t, dir, text)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program, append(j.args, name)...).CombinedOutput(); err != nil {
			s.once(t, "%s of a cluster with %s, %s: %s %s: %v: %s\n%s", from.path, from.cluster["cni"], from.cluster["family"],
				j.program, strings.Join(j.args, " "), err, strings.ReplaceAll(string(out), dir, ""), text)
		}
	}
}

// installed finds a program of the machine, in the folders of administrators too.
func installed(program string) func() (string, error) {
	return func() (string, error) {
		if at, err := exec.LookPath(program); err == nil {
			return at, nil
		}
		return exec.LookPath("/usr/sbin/" + program)
	}
}

// builtMinor is the release whose kubeadm is built from source.
const builtMinor = "1.34"

func builtKubeadm() (string, error) {
	at := os.Getenv("KK_UPSTREAM")
	if at == "" {
		home, _ := os.UserHomeDir()
		at = filepath.Join(home, ".cache/kk-upstream")
	}
	return exec.LookPath(filepath.Join(at, "kubernetes-v"+builtMinor+".4/amd64/kubeadm"))
}

var authority = regexp.MustCompile(`ca-file \S+`)

// withAuthority puts a certificate where haproxy looks for that of the authority.
func withAuthority(t *testing.T, dir, text string) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	name := filepath.Join(dir, "ca.crt")
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(name, crt, 0o600); err != nil {
		t.Fatal(err)
	}
	return authority.ReplaceAllString(text, "ca-file "+name)
}

var onInterface = regexp.MustCompile(`(?m)^  interface eth0$`)

// withInterface names an interface of this machine: keepalived wants one that
// is there, is not the loopback, and can do multicast.
func withInterface(t *testing.T, _, text string) string {
	t.Helper()
	need(t, "curl") // which the settings name
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagMulticast != 0 })
	if i < 0 {
		t.Skip("the machine has no network interface that keepalived would take")
	}
	return onInterface.ReplaceAllString(text, "  interface "+all[i].Name)
}
