package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// kernelSetting is a setting of the machine that labs need at least at a value.
type kernelSetting struct {
	path  string
	least int
	saved string // file of what it was before the first lab
}

// kernelSettings: hosts reach each other and beyond; and all hosts' systemd,
// containerd and kubelet share root's inotify instances, of which a machine
// has 128 by default. A host that gets none hangs while booting.
func kernelSettings() []kernelSetting {
	return []kernelSetting{
		{"/proc/sys/net/ipv4/ip_forward", 1, filepath.Join(stateRoot, "ip_forward.before")},
		{"/proc/sys/fs/inotify/max_user_instances", 8192, filepath.Join(stateRoot, "max_user_instances.before")},
	}
}

func (k kernelSetting) raise() error {
	now, err := os.ReadFile(k.path)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(now))); err == nil && n >= k.least {
		return nil
	}
	if err := os.WriteFile(k.saved, now, 0o600); err != nil {
		return err
	}
	return os.WriteFile(k.path, []byte(strconv.Itoa(k.least)+"\n"), 0o644)
}

// restore puts the setting back, once no lab is left.
func (k kernelSetting) restore() error {
	before, err := os.ReadFile(k.saved)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.path, before, 0o644); err != nil {
		return err
	}
	return os.Remove(k.saved)
}

func raiseKernelSettings() error {
	for _, k := range kernelSettings() {
		if err := k.raise(); err != nil {
			return err
		}
	}
	return nil
}

func restoreKernelSettings() error {
	var errs []error
	for _, k := range kernelSettings() {
		errs = append(errs, k.restore())
	}
	return errors.Join(errs...)
}
