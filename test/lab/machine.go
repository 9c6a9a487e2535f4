package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// tools maps a command that the lab runs to the Debian package that has it.
var tools = []struct{ command, pkg string }{
	{"systemd-nspawn", "systemd-container"},
	{"mmdebstrap", "mmdebstrap"},
	{"ip", "iproute2"},
	{"iptables", "iptables"},
	{"ssh", "openssh-client"},
	{"ssh-keygen", "openssh-client"},
	{"nsenter", "util-linux"},
}

// umlTools are what hosts with a kernel of their own need.
var umlTools = []struct{ command, pkg string }{
	{"linux.uml", "user-mode-linux"}, {"mkfs.ext4", "e2fsprogs"}, {"gcc", "gcc"}, {"gcc", "libc6-dev"},
}

// Usable says why this machine cannot run a lab, or nil when it can (it may
// still have to install packages).
func Usable() error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("the lab needs Linux, this is %s", runtime.GOOS)
	case os.Geteuid() != 0:
		return errors.New("the lab needs root: it makes network namespaces and mounts")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("the lab needs a Debian machine: there is no apt-get")
	}
	return nil
}

func installTools(ctx context.Context, progress io.Writer, uml bool) error {
	var missing []string
	needed := tools
	if uml {
		needed = append(slices.Clone(tools), umlTools...)
	}
	for _, t := range needed {
		if _, err := exec.LookPath(t.command); err != nil {
			missing = append(missing, t.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(progress, "install %s\n", strings.Join(missing, " "))
	if err := run(ctx, "apt-get", "update", "-q"); err != nil {
		return err
	}
	return run(ctx, "apt-get", append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...)...)
}

// run runs a command of this machine; its error carries what the command printed.
func run(ctx context.Context, name string, args ...string) error {
	_, err := output(ctx, nil, name, args...)
	return err
}

// output runs a command with in as its input (nil for none) and returns its stdout.
func output(ctx context.Context, in io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	cmd.Stdin = in
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err,
			strings.TrimSpace(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}
