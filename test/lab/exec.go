package lab

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Exec runs a shell script as root on host i, past sshd and the network (but over
// them on a host with a kernel of its own), and returns its output. A script that
// exits non-zero is an error with what it wrote.
func (l *Lab) Exec(ctx context.Context, i int, script string) (string, error) {
	h := l.Hosts[i]
	if h.options().OwnKernel {
		out, err := h.ssh(ctx, script)
		if err != nil {
			return out, fmt.Errorf("run a script on %s: %w", h.Name, err)
		}
		return out, nil
	}
	pid, err := h.initPID()
	if err != nil {
		return "", err
	}
	out, err := output(ctx, strings.NewReader(script), "nsenter", "-t", strconv.Itoa(pid), "-a",
		"/usr/bin/env", "-i", "HOME=/root", "LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-s")
	if err != nil {
		return out, fmt.Errorf("run a script on %s: %w", h.Name, err)
	}
	return out, nil
}

// KillSSHD kills every sshd on host i, listener and sessions, so that open
// connections break. systemd starts a new listener; to keep it away run
// "systemctl stop ssh" with [Lab.Exec].
func (l *Lab) KillSSHD(ctx context.Context, i int) error {
	// systemd restarts it, but gives up on one that it started five times in ten seconds.
	_, err := l.Exec(ctx, i, "systemctl reset-failed ssh; pkill -KILL -x sshd")
	return err
}

// initPID is the machine's number of the host's PID 1, a child of nspawn.
func (h *Host) initPID() (int, error) {
	nspawn := strconv.Itoa(h.pid())
	children, err := os.ReadFile("/proc/" + nspawn + "/task/" + nspawn + "/children")
	if err != nil {
		return 0, fmt.Errorf("%s is not running", h.Name)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(children)), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("%s is not running: nspawn has no child", h.Name)
	}
	return pid, nil
}
