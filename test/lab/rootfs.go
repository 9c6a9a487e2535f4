package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// packages are what every host has beside Debian's minimal system.
var packages = []string{
	"busybox-static", "ca-certificates", "cron", "curl", "dbus", "iproute2", "iptables", "iputils-ping",
	"kmod", "openssh-server", "procps", "sudo", "systemd", "systemd-sysv",
}

// suite is Debian 12: its systemd (252) still accepts cgroup v1.
const suite = "bookworm"

// customize makes the users and the settings that all hosts share. Host keys
// and machine-id are a host's own. The user ops has RHEL's lines in sudoers: programs
// in /usr/local/bin are not in the path of its sudo. The console getty and journal writing to
// disk cost boot time and serve nobody.
const customize = `set -eu
root=$1
chroot "$root" useradd -m -s /bin/bash ops
chroot "$root" useradd -m -s /bin/bash -G sudo dev
cat >"$root/etc/sudoers.d/ops" <<'SUDOERS'
Defaults:ops !visiblepw, always_set_home, match_group_by_gid, env_reset, secure_path = /sbin:/bin:/usr/sbin:/usr/bin
ops ALL=(ALL) NOPASSWD:ALL
SUDOERS
chmod 0440 "$root/etc/sudoers.d/ops"
rm -f "$root"/etc/ssh/ssh_host_*_key "$root"/etc/ssh/ssh_host_*_key.pub
: >"$root/etc/machine-id"
cat >"$root/etc/systemd/system/lab-host.service" <<'UNIT'
[Unit]
Description=What a host of the lab needs after boot
DefaultDependencies=no
Before=sysinit.target systemd-modules-load.service kmod-static-nodes.service proc-fs-nfsd.mount

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/lab-host.sh

[Install]
WantedBy=sysinit.target
UNIT
ln -s ../lab-host.service "$root/etc/systemd/system/sysinit.target.wants/lab-host.service"
for unit in console-getty.service getty.target systemd-networkd.service systemd-resolved.service \
	systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	fstrim.timer e2scrub_reap.service sys-kernel-debug.mount sys-kernel-tracing.mount systemd-modules-load.service; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
`

// ensureRootFS returns a root file system with packages, building it when the
// cache has none. The folder's name is a hash of all that goes in.
func ensureRootFS(ctx context.Context, cache string, packages []string, progress io.Writer) (string, error) {
	cache, err := cacheDir(cache)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(suite + "\n" + strings.Join(packages, "\n") + "\n" + customize))
	dir := filepath.Join(cache, "rootfs-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	fmt.Fprintf(progress, "build a Debian %s root file system (once, about 30 s)\n", suite)
	if err := buildRootFS(ctx, dir, packages); err != nil {
		return "", fmt.Errorf("build root file system: %w", err)
	}
	return dir, nil
}

// buildRootFS builds beside dir and renames at the end, so that a half-built
// tree is never taken for a whole one.
func buildRootFS(ctx context.Context, dir string, packages []string) error {
	tmp := dir + ".building"
	hook := dir + ".hook"
	defer os.RemoveAll(hook)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"+customize), 0o700); err != nil {
		return err
	}
	args := []string{"--variant=minbase", "--include=" + strings.Join(packages, ","), "--customize-hook=" + hook}
	settings, err := aptSettings(ctx)
	if err != nil {
		return err
	}
	for _, s := range settings {
		args = append(args, "--aptopt="+strings.TrimSuffix(s, ";"))
	}
	if err := run(ctx, "mmdebstrap", append(args, suite, tmp)...); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return os.Rename(tmp, dir)
}

// aptSettings are the machine's own lines on how packages are fetched, such as a proxy.
func aptSettings(ctx context.Context) ([]string, error) {
	dump, err := output(ctx, nil, "apt-config", "dump")
	if err != nil {
		return nil, err
	}
	var settings []string
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, `"";`) {
			continue
		}
		for _, prefix := range []string{"Acquire::http", "Acquire::Check-", "Acquire::Retries", "Acquire::Force"} {
			if strings.HasPrefix(line, prefix) {
				settings = append(settings, line)
			}
		}
	}
	return settings, nil
}

func cacheDir(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv("KK_CACHE")
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a cache folder (set KK_CACHE to choose one): %w", err)
		}
		dir = filepath.Join(user, "kk-lab")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}
