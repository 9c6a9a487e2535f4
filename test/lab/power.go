package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// enter writes its own pid to the cgroups given up to "--" and becomes the rest.
// Being there before nspawn starts is what gives the host its own subtree.
const enter = `while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done; shift; exec "$@"`

// Start powers host i on and waits until its sshd answers. A host that runs is
// left alone.
func (l *Lab) Start(ctx context.Context, i int) error {
	if err := l.start(ctx, i); err != nil {
		return err
	}
	return l.Hosts[i].waitForSSH(ctx)
}

func (l *Lab) start(ctx context.Context, i int) error {
	h := l.Hosts[i]
	if h.Running() {
		return nil
	}
	fmt.Fprintf(l.progress, "start %s %s\n", h.Name, h.Address)
	if err := h.powerOff(); err != nil {
		return err
	}
	if err := h.ensureNetwork(ctx); err != nil {
		return err
	}
	if err := h.ensureDisk(ctx); err != nil {
		return err
	}
	return h.boot()
}

// PowerOff pulls host i's plug: every process on it dies at once, and nobody answers at its addresses. Its disk
// stays, and [Lab.Start] boots it again.
func (l *Lab) PowerOff(i int) error {
	h := l.Hosts[i]
	return errors.Join(h.powerOff(), h.removeNetwork(context.Background()))
}

func (h *Host) powerOff() error {
	if err := h.killAll(); err != nil {
		return err
	}
	if err := os.Remove(h.path("pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return h.removeCgroups()
}

// remove takes everything of the host away, its disk too.
func (h *Host) remove(ctx context.Context) error {
	errs := []error{h.powerOff(), h.removeNetwork(ctx), unmountBelow(h.path())}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(h.path()), os.RemoveAll("/run/systemd/nspawn/propagate/"+h.machine()))
}

// machine is the host's name among all nspawn containers.
func (h *Host) machine() string { return h.lab.state.label() + "-" + h.Name }

func (h *Host) boot() error {
	entrances, err := h.ensureCgroups()
	if err != nil {
		return err
	}
	console, err := os.OpenFile(h.path("console.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	args := append([]string{"-c", enter, "sh"}, entrances...)
	boot := h.nspawn()
	if h.options().OwnKernel {
		boot = h.uml()
	}
	args = append(append(args, "--"), boot...)
	cmd := exec.Command("sh", args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_API_VFS_WRITABLE=1", "SYSTEMD_SECCOMP=0")
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the host outlives this process
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("boot %s: %w", h.Name, err)
	}
	go cmd.Wait() // ends with the host; without it a dead host stays as a zombie
	return h.recordPID(cmd.Process.Pid)
}

// nspawn is the command that boots the host, with what a kubelet on it needs.
func (h *Host) nspawn() []string {
	args := []string{
		"systemd-nspawn", "-q", "--register=no", "--keep-unit", "--boot", "--console=read-only",
		"--machine=" + h.machine(), "--hostname=" + h.Name, "-D", h.root(),
		"--network-namespace-path=/run/netns/" + h.namespace(),
		"--resolv-conf=off", "--timezone=off", "--link-journal=no", "--settings=no",
		"--capability=all", "--system-call-filter=@keyring bpf add_key keyctl", "--bind=/dev/kmsg",
	}
	for _, d := range dataFolders {
		args = append(args, "--bind="+h.path("data", d)+":/var/lib/"+d)
	}
	return args
}

// recordPID keeps the pid together with the process's start time, which tells
// the process from a later one with the same number.
func (h *Host) recordPID(pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("boot %s: it ended at once, see %s", h.Name, h.path("console.log"))
	}
	return os.WriteFile(h.path("pid"), fmt.Appendf(nil, "%d %s\n", pid, started), 0o600)
}

// Running says whether the host is powered on.
func (h *Host) Running() bool { return h.pid() != 0 }

// pid is the process of nspawn, 0 when it does not run.
func (h *Host) pid() int {
	data, err := os.ReadFile(h.path("pid"))
	if err != nil {
		return 0
	}
	number, started, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	if now, err := startTime(pid); err != nil || now != started {
		return 0
	}
	return pid
}

// startTime is when the process started, in clock ticks since the machine booted.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The command's name comes second, in parentheses, and may hold spaces.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}

func (l *Lab) waitForSSH(ctx context.Context) error {
	for _, h := range l.Hosts {
		if err := h.waitForSSH(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) waitForSSH(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	for {
		err := h.ready(ctx)
		if err == nil {
			return nil
		}
		if !h.Running() {
			return fmt.Errorf("%s stopped while booting, see %s", h.Name, h.path("console.log"))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for sshd on %s: %w: %w, see %s", h.Name, ctx.Err(), err, h.path("console.log"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ready says why nobody can log in yet, nil when everyone can. sshd answers a
// moment before users other than root are let in.
func (h *Host) ready(ctx context.Context) error {
	if err := greet(ctx, h.Address); err != nil {
		return err
	}
	if h.options().OwnKernel {
		_, err := h.ssh(ctx, "test ! -e /run/nologin")
		return err
	}
	pid, err := h.initPID()
	if err != nil {
		return err
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/run/nologin", pid)); err == nil {
		return errors.New("the system is still booting")
	}
	return nil
}

// greet reads the banner of an sshd: a listening port alone may be a socket
// that systemd holds open.
func greet(ctx context.Context, address string) error {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, "22"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "SSH-2.0-") {
		return fmt.Errorf("%s answers %q", address, line)
	}
	return nil
}
