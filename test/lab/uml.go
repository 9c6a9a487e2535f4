package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A host with a kernel of its own is User Mode Linux: Debian's package of it boots the same root file system in about
// ten seconds. It has what the machine's kernel may lack, such as IPVS, NFS, dummy interfaces, device mapper and
// netem, and its own clock. Its root is a file with ext4; /dev/ubdb and /dev/ubdc are empty disks.

// umlMemory is the memory of such a host in MiB, unless its options set another. Only what it uses is taken.
const umlMemory = 1024

// umlModules is where Debian's package has the modules of the kernel.
const umlModules = "/usr/lib/uml/modules"

// umlDisks are the sizes in MiB of a host's disks: its root, and the empty ones. The files are sparse.
var umlDisks = [...]int64{6144, 512, 256}

func (h *Host) umlDisk(n int) string { return h.path(fmt.Sprintf("disk%d", n)) }

// ensureUMLDisks makes the host's disks. Its root gets what other hosts see of their overlay.
func (h *Host) ensureUMLDisks(ctx context.Context) error {
	for n, size := range umlDisks {
		path := h.umlDisk(n)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		f, err := os.Create(path + ".new")
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(size<<20), f.Close()); err != nil {
			return err
		}
		if n == 0 {
			if err := run(ctx, "mkfs.ext4", "-q", "-F", "-d", h.root(), path+".new"); err != nil {
				return err
			}
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// umlPower runs a kernel, and runs it again after it has powered off for a reboot: it does not survive one itself.
// $0 is the file by which the host says so, see umlShutdown.
const umlPower = `while :; do "$@"; [ -e "$0" ] || exit; rm "$0"; done`

// umlShutdown is what systemd runs last, with what it is about to do.
func (h *Host) umlShutdown() string {
	return "#!/bin/sh\n[ \"$1\" = reboot ] || exit 0\nmount -t hostfs -o " + h.path() +
		" none /mnt && touch /mnt/reboot && umount /mnt\nexec systemctl poweroff -ff\n"
}

// uml is the command that boots the host.
func (h *Host) uml() []string {
	memory := umlMemory
	if m := h.options().MemoryMB; m != 0 {
		memory = m
	}
	return []string{
		"sh", "-c", umlPower, h.path("reboot"), "env", "LD_PRELOAD=" + h.path("xstate.so"),
		"linux.uml", fmt.Sprintf("mem=%dM", memory), "umid=" + h.machine(), "uml_dir=" + h.path("uml"),
		"ubd0=" + h.umlDisk(0), "ubd1=" + h.umlDisk(1), "ubd2=" + h.umlDisk(2), "root=/dev/ubda", "rootfstype=ext4", "rw",
		"init=/lib/systemd/systemd",
		"vec0:transport=tap,ifname=" + h.veth() + ",depth=64,gro=1", "con=null", "con0=null,fd:1", "quiet",
	}
}

// umlBootScript runs early in every boot: it does what for other hosts is done around them.
func (h *Host) umlBootScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mkdir -p /usr/lib/modules && mount -t hostfs -o %s none /usr/lib/modules\n", umlModules)
	b.WriteString("ip link set lo up\nip link set vec0 name eth0\n")
	for _, address := range append([]string{h.Address + "/24"}, h.options().Addresses...) {
		fmt.Fprintf(&b, "ip address add %s dev eth0\n", address)
	}
	fmt.Fprintf(&b, "ip link set eth0 up\nip route add default via %s\n", h.lab.state.gateway())
	if name := h.options().Hostname; name != "" {
		fmt.Fprintf(&b, "printf %%s '%s' >/proc/sys/kernel/hostname\n", strings.ReplaceAll(name, "'", ""))
	}
	b.WriteString("exit 0\n")
	return b.String()
}

// plugTap makes the host's cable, which the kernel itself opens.
func (h *Host) plugTap(ctx context.Context) error {
	for _, step := range []string{
		"tuntap add mode tap name " + h.veth(),
		fmt.Sprintf("link set %s master %s up", h.veth(), h.lab.state.label()),
	} {
		if err := run(ctx, "ip", strings.Fields(step)...); err != nil {
			return err
		}
	}
	return nil
}

// ssh runs a script as root on a host whose processes the machine does not see.
func (h *Host) ssh(ctx context.Context, script string) (string, error) {
	return output(ctx, strings.NewReader(script), "ssh", "-i", h.Key, "-o", "BatchMode=yes", "-o", "ConnectTimeout=5",
		"-o", "LogLevel=ERROR", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"root@"+h.Address, "PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -s")
}

// needsUML says whether a host of the lab has a kernel of its own.
func needsUML(hosts map[int]HostOptions) bool {
	for _, o := range hosts {
		if o.OwnKernel {
			return true
		}
	}
	return false
}

//go:embed uml/xstate.c
var xstate string

// ensureUMLFiles makes the folder where a kernel keeps its sockets, and what it preloads.
func (h *Host) ensureUMLFiles(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(h.path("uml"), h.machine()), 0o700); err != nil {
		return err
	}
	_, err := output(ctx, strings.NewReader(xstate), "gcc", "-O2", "-shared", "-fPIC", "-o", h.path("xstate.so"),
		"-x", "c", "-")
	return err
}
