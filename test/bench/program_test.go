package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubekey/pkg/connector/connectortest"
	"kubekey/test/lab"
)

// program builds kk and returns its path.
func program(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "kk")
	if err := lab.BuildKK(path); err != nil {
		b.Fatal(err)
	}
	return path
}

// cluster is hosts that answer on addresses of their own, all on loopback.
type cluster struct {
	*connectortest.SSHD // the first one; its key logs in everywhere
	addrs               []string
	keys                map[string]ssh.PublicKey // host keys, by address
	dir                 string
	inventory           string
	knownHosts          string
}

// perServer is how many addresses one sshd listens on: it takes 16 at most.
const perServer = 10

func newCluster(b *testing.B, hosts int) *cluster {
	b.Helper()
	port := freePort(b)
	c := &cluster{dir: b.TempDir(), keys: map[string]ssh.PublicKey{}}
	for first := 0; first < hosts; first += perServer {
		config := []string{"MaxSessions 20", "LogLevel ERROR"}
		var addrs []string
		for i := first; i < min(hosts, first+perServer); i++ {
			addr := fmt.Sprintf("127.0.9.%d", i+1)
			config = append(config, fmt.Sprintf("ListenAddress %s:%d", addr, port))
			addrs = append(addrs, fmt.Sprintf("%s:%d", addr, port))
		}
		if c.SSHD != nil {
			config = append(config, "AuthorizedKeysFile "+filepath.Join(filepath.Dir(c.KeyFile), "authorized_keys"))
		}
		d := connectortest.StartSSHD(b, config...)
		if c.SSHD == nil {
			c.SSHD = d
		}
		for _, a := range addrs {
			c.addrs = append(c.addrs, a)
			c.keys[a] = d.HostKey
		}
	}
	c.writeFiles(b, port)
	return c
}

func (c *cluster) writeFiles(b *testing.B, port int) {
	var known, inv strings.Builder
	inv.WriteString("all:\n  hosts:\n")
	for i, a := range c.addrs {
		host, p, _ := net.SplitHostPort(a)
		fmt.Fprintf(&known, "[%s]:%s %s", host, p, ssh.MarshalAuthorizedKey(c.keys[a]))
		fmt.Fprintf(&inv, "    n%d: {ansible_host: %s}\n", i+1, host)
	}
	c.knownHosts = write(b, c.dir, "known_hosts", known.String())
	fmt.Fprintf(&inv, "  vars:\n    ansible_port: %d\n    ansible_user: root\n    ansible_ssh_private_key_file: %s\n"+
		"    ansible_ssh_common_args: -o UserKnownHostsFile=%s\n    ansible_python_interpreter: %s\n", port, c.KeyFile,
		c.knownHosts, python())
	c.inventory = write(b, c.dir, "inventory.yaml", inv.String())
}

func python() string {
	if p, err := exec.LookPath("/usr/bin/python3"); err == nil {
		return p
	}
	return "python3"
}

func freePort(b testing.TB) int {
	l, err := net.Listen("tcp", "127.0.9.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// kk runs the program and returns its time and peak memory in MB.
func kk(b *testing.B, bin string, env []string, args ...string) (time.Duration, float64) {
	b.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), append(env, "KK_WORKDIR="+filepath.Join(b.TempDir(), "work"))...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err != nil {
		b.Fatalf("kk %v: %v\n%s", args, err, out)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return took, float64(usage.Maxrss) / 1024
}

func (c *cluster) dial(b *testing.B, addr string) *ssh.Client {
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		b.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		b.Fatal(err)
	}
	client, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(c.keys[addr]),
	})
	if err != nil {
		b.Fatal(err)
	}
	return client
}

// bareLoop runs /bin/true n times on each address over one connection each.
func (c *cluster) bareLoop(b *testing.B, n int) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for _, addr := range c.addrs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			client := c.dial(b, addr)
			defer client.Close()
			for range n {
				s, err := client.NewSession()
				if err != nil {
					b.Error(err)
					return
				}
				if err := s.Run("/bin/true"); err != nil {
					b.Error(err)
				}
				s.Close()
			}
		}()
	}
	wg.Wait()
	return time.Since(start)
}

func truePlaybook() string {
	var p strings.Builder
	p.WriteString("- hosts: all\n  gather_facts: false\n  tasks:\n")
	for range tasksPerPlay {
		p.WriteString("    - command: /bin/true\n")
	}
	return p.String()
}

// BenchmarkSSH holds 20 tasks of /bin/true on 20 addresses, by the program as
// people run it, against a bare loop that does the same executions: ratio is to
// be at most 1.3.
func BenchmarkSSH(b *testing.B) {
	bin := program(b)
	c := newCluster(b, 20)
	playbook := write(b, c.dir, "site.yaml", truePlaybook())
	var bare, own time.Duration
	for range b.N {
		// In turns, so that a busy neighbour hits both.
		bare += c.bareLoop(b, tasksPerPlay)
		took, _ := kk(b, bin, nil, "run", playbook, "-i", c.inventory)
		own += took
	}
	b.ReportMetric(bare.Seconds()/float64(b.N), "bare-s")
	b.ReportMetric(own.Seconds()/float64(b.N), "kk-s")
	b.ReportMetric(own.Seconds()/bare.Seconds(), "ratio")
}

// BenchmarkAnsible is the same playbook by ansible-playbook with pipelining,
// ControlPersist and 50 forks: faster is to be at least 20.
func BenchmarkAnsible(b *testing.B) {
	ansible, err := exec.LookPath("ansible-playbook")
	if err != nil {
		b.Skip("ansible-playbook is not there: `make bench` installs Debian's ansible-core")
	}
	bin := program(b)
	c := newCluster(b, 20)
	playbook := write(b, c.dir, "site.yaml", truePlaybook())
	var peer, own time.Duration
	for range b.N {
		took, _ := kk(b, bin, nil, "run", playbook, "-i", c.inventory)
		own += took
		cmd := exec.Command(ansible, "-i", c.inventory, playbook)
		cmd.Env = append(os.Environ(), "ANSIBLE_PIPELINING=1", "ANSIBLE_FORKS=50",
			"ANSIBLE_SSH_ARGS=-o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile="+c.knownHosts,
			"ANSIBLE_LOCAL_TEMP="+b.TempDir(), "ANSIBLE_SSH_CONTROL_PATH_DIR="+b.TempDir(), "HOME="+c.dir)
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("ansible-playbook: %v\n%s", err, out)
		}
		peer += time.Since(start)
	}
	b.ReportMetric(peer.Seconds()/float64(b.N), "ansible-s")
	b.ReportMetric(own.Seconds()/float64(b.N), "kk-s")
	b.ReportMetric(peer.Seconds()/own.Seconds(), "faster")
}

// BenchmarkStart is how long `kk version` takes: at most 30 ms.
func BenchmarkStart(b *testing.B) {
	bin := program(b)
	for b.Loop() {
		kk(b, bin, nil, "version")
	}
}

// BenchmarkParse is how long a project of 1000 task files takes to load: at most 1 s.
func BenchmarkParse(b *testing.B) {
	bin := program(b)
	dir := b.TempDir()
	var main strings.Builder
	main.WriteString("- hosts: all\n  tasks:\n")
	for i := range 1000 {
		fmt.Fprintf(&main, "    - import_tasks: tasks/t%d.yaml\n", i)
		var t strings.Builder
		for j := range 10 {
			fmt.Fprintf(&t, "- name: task %d\n  copy: {dest: \"/tmp/{{ inventory_hostname }}-%d\", content: \"{{ a | default('x') }}\"}\n  when: b is defined and b > %d\n", j, j, j)
		}
		write(b, dir, fmt.Sprintf("tasks/t%d.yaml", i), t.String())
	}
	playbook := write(b, dir, "site.yaml", main.String())
	for b.Loop() {
		kk(b, bin, nil, "run", "--syntax-check", playbook)
	}
}

// BenchmarkLargeFile copies 300 MB to three addresses, and holds it against
// `ssh host 'cat > f'` for the same bytes at the same time: share is to be at least
// 0.7, and peak-MB below 100.
func BenchmarkLargeFile(b *testing.B) {
	const size = 300 << 20
	bin := program(b)
	c := newCluster(b, 3)
	src := filepath.Join(c.dir, "large")
	f, err := os.Create(src)
	if err != nil {
		b.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	for range size >> 20 {
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	f.Close()
	playbook := write(b, c.dir, "site.yaml",
		fmt.Sprintf("- hosts: all\n  gather_facts: false\n  tasks:\n    - copy: {src: %s, dest: \"%s/{{ inventory_hostname }}\"}\n", src, c.dir))
	var bare, own time.Duration
	var peak float64
	for range b.N {
		bare += c.bareCat(b, src)
		took, mb := kk(b, bin, nil, "run", playbook, "-i", c.inventory)
		own += took
		peak = max(peak, mb)
		for i := range c.addrs {
			os.Remove(fmt.Sprintf("%s/n%d", c.dir, i+1))
		}
	}
	b.ReportMetric(bare.Seconds()/float64(b.N), "bare-s")
	b.ReportMetric(own.Seconds()/float64(b.N), "kk-s")
	b.ReportMetric(bare.Seconds()/own.Seconds(), "share")
	b.ReportMetric(peak, "peak-MB")
}

// bareCat is `ssh host 'cat > f' < large` to all addresses at once.
func (c *cluster) bareCat(b *testing.B, src string) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for i, addr := range c.addrs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			host, port, _ := net.SplitHostPort(addr)
			cmd := exec.CommandContext(context.Background(), "ssh", "-i", c.KeyFile, "-p", port, "-o", "UserKnownHostsFile="+
				c.knownHosts,
				"-o", "BatchMode=yes", "root@"+host, fmt.Sprintf("cat > %s/bare%d", c.dir, i))
			in, err := os.Open(src)
			if err != nil {
				b.Error(err)
				return
			}
			defer in.Close()
			cmd.Stdin = in
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Errorf("%v\n%s", err, out)
			}
			os.Remove(fmt.Sprintf("%s/bare%d", c.dir, i))
		}()
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkDelayed is what 20 more tasks cost over a link of 100 ms, divided by
// the link's round trip: time on the machines included. A plain command is to cost
// at most 1.2, a small changed file 2.2, an unchanged one 1.2, and a skipped task
// nothing. counted is the same in round trips alone, through a proxy that counts them.
func BenchmarkDelayed(b *testing.B) {
	const rtt = 100 * time.Millisecond
	bin := program(b)
	for _, t := range []struct{ name, task, warm string }{
		{"command", "command: /bin/true", ""},
		{"changed_file", "copy: {content: \"{{ stamp }} @\", dest: \"DIR/changed-@\"}",
			"copy: {content: old, dest: \"DIR/changed-@\"}"},
		{"unchanged_file", "copy: {content: same, dest: \"DIR/same-@\"}", "copy: {content: same, dest: \"DIR/same-@\"}"},
		{"skipped", "command: /bin/true\n      when: inventory_hostname == 'x'", ""},
	} {
		b.Run(t.name, func(b *testing.B) {
			c := newCluster(b, 1)
			proxy := connectortest.DelayProxy(b, c.addrs[0], rtt)
			turns := connectortest.TurnProxy(b, c.addrs[0])
			through := func(addr string) []string {
				host, port, _ := net.SplitHostPort(addr)
				known := write(b, c.dir, "known_"+port, fmt.Sprintf("[%s]:%s %s", host, port,
					ssh.MarshalAuthorizedKey(c.keys[c.addrs[0]])))
				return []string{"-i", host + ",", "-u", "root", "--private-key", c.KeyFile, "-e", "ansible_port=" + port,
					"--known-hosts", known}
			}
			tasks := func(text string, n int) string {
				var p strings.Builder
				p.WriteString("- hosts: all\n  gather_facts: false\n  tasks:\n    - command: /bin/true\n")
				for i := range n {
					text := strings.NewReplacer("@", fmt.Sprint(i), "DIR", c.dir).Replace(text)
					fmt.Fprintf(&p, "    - %s\n", text)
				}
				return p.String()
			}
			few := write(b, c.dir, "few.yaml", tasks(t.task, 0))
			many := write(b, c.dir, "many.yaml", tasks(t.task, tasksPerPlay))
			run := func(addr, book, stamp string) time.Duration {
				took, _ := kk(b, bin, nil, append([]string{"run", book, "-e", "stamp=" + stamp}, through(addr)...)...)
				return took
			}
			count := func(book, stamp string) int {
				before := turns.Count()
				run(turns.Addr, book, stamp)
				return turns.Count() - before
			}
			trips, counted := 0.0, 0
			for i := range b.N {
				if t.warm != "" {
					run(c.addrs[0], write(b, c.dir, "warm.yaml", tasks(t.warm, tasksPerPlay)), "")
				}
				base := run(proxy.Addr, few, "")
				full := run(proxy.Addr, many, fmt.Sprint("a", i))
				trips += (full - base).Seconds() / rtt.Seconds() / tasksPerPlay
				counted += count(many, fmt.Sprint("b", i)) - count(few, "")
			}
			b.ReportMetric(float64(counted)/float64(b.N)/tasksPerPlay, "counted/task")
			b.ReportMetric(trips/float64(b.N), "round-trips/task")
		})
	}
}
