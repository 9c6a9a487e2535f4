package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// dataFolders lie on the machine's disk and not on the host's overlay, since
// what runs there mounts overlays itself.
var dataFolders = []string{"containerd", "kubelet", "etcd"}

// path is a file or folder of the host's state.
func (h *Host) path(elem ...string) string {
	return h.lab.state.path("hosts", h.Name, filepath.Join(elem...))
}

func (h *Host) root() string { return h.path("root") }

func (h *Host) options() HostOptions { return h.lab.state.Options[h.number-1] }

// ensureDisk mounts the host's root file system and, the first time, gives it an identity.
func (h *Host) ensureDisk(ctx context.Context) error {
	if err := h.mountRoot(); err != nil {
		return err
	}
	if _, err := os.Stat(h.path("identity")); err == nil {
		return nil
	}
	if err := h.writeIdentity(ctx); err != nil {
		return fmt.Errorf("prepare %s: %w", h.Name, err)
	}
	if h.options().OwnKernel {
		if err := h.ensureUMLDisks(ctx); err != nil {
			return fmt.Errorf("make the disks of %s: %w", h.Name, err)
		}
		if err := h.ensureUMLFiles(ctx); err != nil {
			return fmt.Errorf("make what the kernel of %s needs: %w", h.Name, err)
		}
	}
	return os.WriteFile(h.path("identity"), nil, 0o600)
}

func (h *Host) mountRoot() error {
	folders := []string{"root", "upper", "work"}
	for _, d := range dataFolders {
		folders = append(folders, "data/"+d)
	}
	for _, f := range folders {
		if err := os.MkdirAll(h.path(f), 0o755); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(h.root(), "etc")); err == nil {
		return nil // mounted already
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", h.lab.state.RootFS, h.path("upper"), h.path("work"))
	if err := mountOverlay(h.root(), layers); err != nil {
		return fmt.Errorf("mount the disk of %s: %w", h.Name, err)
	}
	return nil
}

// writeIdentity writes what no two hosts share, and what the machine passes on
// so that packages can be installed.
func (h *Host) writeIdentity(ctx context.Context) error {
	settings, err := aptSettings(ctx)
	if err != nil {
		return err
	}
	resolv, err := resolvConf()
	if err != nil {
		return err
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	files := map[string]string{
		"etc/hostname": h.Name + "\n",
		"etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n" + h.Address + " " +
			h.Name + "\n",
		"etc/machine-id":                       fmt.Sprintf("%x\n", id),
		"etc/resolv.conf":                      resolv,
		"etc/apt/apt.conf.d/90lab":             strings.Join(settings, "\n") + "\n",
		"etc/lab-host.sh":                      h.bootScript(),
		"etc/systemd/journald.conf.d/lab.conf": "[Journal]\nStorage=volatile\n",
	}
	for name, content := range files {
		path := filepath.Join(h.root(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if h.options().OwnKernel {
		// Ordinary hosts cannot load modules.
		if err := os.Remove(filepath.Join(h.root(), "etc/systemd/system/systemd-modules-load.service")); err != nil {
			return err
		}
		script := filepath.Join(h.root(), "lib/systemd/system-shutdown/lab")
		if err := os.WriteFile(script, []byte(h.umlShutdown()), 0o755); err != nil {
			return err
		}
	}
	if err := h.writeMeminfo(); err != nil {
		return err
	}
	return h.writeLogins(ctx)
}

// resolvConf is the machine's resolv.conf; when that points at a resolver on
// the loopback, which a host cannot reach, the one that names the real servers.
func resolvConf() (string, error) {
	data, err := os.ReadFile("/etc/resolv.conf")
	if strings.Contains(string(data), "nameserver 127.") {
		if real, err := os.ReadFile("/run/systemd/resolve/resolv.conf"); err == nil {
			return string(real), nil
		}
	}
	return string(data), err
}

// bootScript runs early in every boot: nspawn leaves the cgroups read-only, and
// the host's options are put in force.
func (h *Host) bootScript() string {
	if h.options().OwnKernel {
		return h.umlBootScript()
	}
	var b strings.Builder
	b.WriteString("for c in /sys/fs/cgroup/*/; do mount -o remount,bind,rw \"$c\"; done\n")
	if name := h.options().Hostname; name != "" {
		// systemd and hostname(1) refuse a name that breaks the rules; the kernel takes any.
		fmt.Fprintf(&b, "printf %%s '%s' >/proc/sys/kernel/hostname\n", strings.ReplaceAll(name, "'", ""))
	}
	if h.options().MemoryMB != 0 {
		b.WriteString("mount --bind /etc/lab-meminfo /proc/meminfo\n")
	}
	b.WriteString("exit 0\n")
	return b.String()
}

// writeMeminfo writes what /proc/meminfo shows on a host with a memory limit:
// the kernel shows the machine's memory there, whatever the cgroup's limit.
func (h *Host) writeMeminfo() error {
	kib := h.options().MemoryMB << 10
	if kib == 0 || h.options().OwnKernel {
		return nil
	}
	content := fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\n"+
		"Buffers:               0 kB\nCached:                0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n",
		kib, kib*3/4, kib*3/4)
	return os.WriteFile(filepath.Join(h.root(), "etc/lab-meminfo"), []byte(content), 0o444)
}

// writeLogins makes the host's key, lets the lab's key in, and sets dev's password.
func (h *Host) writeLogins(ctx context.Context) error {
	hostKey := filepath.Join(h.root(), "etc/ssh/ssh_host_ed25519_key")
	if err := os.Remove(hostKey); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := makeKey(ctx, hostKey, h.Name); err != nil {
		return err
	}
	public, err := os.ReadFile(h.Key + ".pub")
	if err != nil {
		return err
	}
	for _, home := range []string{"root", "home/ops", "home/dev"} {
		if err := authorize(filepath.Join(h.root(), home), public); err != nil {
			return err
		}
	}
	password, err := os.ReadFile(h.lab.PasswordFile())
	if err != nil {
		return err
	}
	login := "dev:" + strings.TrimSpace(string(password)) + "\n"
	_, err = output(ctx, strings.NewReader(login), "chroot", h.root(), "chpasswd", "-c", "SHA512")
	return err
}

// authorize lets the key into the account whose home folder is given.
func authorize(home string, public []byte) error {
	var owner unix.Stat_t
	if err := unix.Stat(home, &owner); err != nil {
		return fmt.Errorf("find home %s: %w", home, err)
	}
	dir := filepath.Join(home, ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, "authorized_keys")
	if err := os.WriteFile(file, public, 0o600); err != nil {
		return err
	}
	for _, path := range []string{dir, file} {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return nil
}
