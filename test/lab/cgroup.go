package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchies are the mount points of the machine's cgroups: one for each
// controller on cgroup v1, a single one on v2.
func hierarchies() ([]string, error) {
	const mount = "/sys/fs/cgroup"
	if _, err := os.Stat(mount + "/cgroup.procs"); err == nil {
		return []string{mount}, nil
	}
	entries, err := os.ReadDir(mount)
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	var found []string
	for _, e := range entries {
		dir := filepath.Join(mount, e.Name())
		if _, err := os.Stat(dir + "/cgroup.procs"); err == nil && e.IsDir() {
			found = append(found, dir)
		}
	}
	return found, nil
}

// cgroup is the host's path below each hierarchy.
func (h *Host) cgroup() string { return filepath.Join(h.lab.state.label(), h.Name) }

// ensureCgroups makes the host's own subtree in every hierarchy, which its
// systemd and a kubelet need, and returns the files that a process writes its
// pid to in order to enter it.
func (h *Host) ensureCgroups() ([]string, error) {
	mounts, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var entrances []string
	for _, mount := range mounts {
		dir := filepath.Join(mount, h.cgroup())
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
		for _, level := range []string{filepath.Dir(dir), dir} {
			if err := inheritCPUSet(level); err != nil {
				return nil, err
			}
		}
		entrances = append(entrances, dir+"/cgroup.procs")
	}
	return entrances, h.limitMemory()
}

// inheritCPUSet copies the parent's processors and memory nodes: a v1 cpuset
// starts empty, and then no process can enter it.
func inheritCPUSet(dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		parent, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		own := filepath.Join(dir, name)
		if current, err := os.ReadFile(own); err != nil || strings.TrimSpace(string(current)) != "" {
			continue
		}
		if err := os.WriteFile(own, parent, 0o644); err != nil {
			return fmt.Errorf("set %s: %w", own, err)
		}
	}
	return nil
}

func (h *Host) limitMemory() error {
	mib := h.options().MemoryMB
	if mib == 0 || h.options().OwnKernel {
		return nil
	}
	limit := []byte(strconv.Itoa(mib << 20))
	v1 := filepath.Join("/sys/fs/cgroup/memory", h.cgroup(), "memory.limit_in_bytes")
	if _, err := os.Stat(v1); err == nil {
		return os.WriteFile(v1, limit, 0o644)
	}
	return os.WriteFile(filepath.Join("/sys/fs/cgroup", h.cgroup(), "memory.max"), limit, 0o644)
}

// CPUTime is what the host's processes have taken of the processors since it was first started.
func (h *Host) CPUTime() (time.Duration, error) {
	v1, err := os.ReadFile(filepath.Join("/sys/fs/cgroup/cpuacct", h.cgroup(), "cpuacct.usage"))
	if err == nil {
		ns, err := strconv.ParseInt(strings.TrimSpace(string(v1)), 10, 64)
		return time.Duration(ns), err
	}
	v2, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", h.cgroup(), "cpu.stat"))
	if err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", h.Name, err)
	}
	for line := range strings.Lines(string(v2)) {
		if rest, ok := strings.CutPrefix(line, "usage_usec "); ok {
			us, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell the processor time of %s", h.Name)
}

// killAll ends every process of the host, also those that outlived the pid
// that was recorded, and waits until the kernel has let go of them.
func (h *Host) killAll() error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		pids, err := h.pids()
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: processes %v survive SIGKILL", h.Name, pids)
		}
		for _, pid := range pids {
			// ESRCH is a process that ended by itself.
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d of %s: %w", pid, h.Name, err)
			}
		}
	}
}

// pids lists the processes in the host's cgroups. All hierarchies are asked: a
// process may have been moved in one of them.
func (h *Host) pids() ([]int, error) {
	mounts, err := hierarchies()
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	var pids []int
	for _, mount := range mounts {
		err := walkCgroups(filepath.Join(mount, h.cgroup()), func(dir string) error {
			data, err := os.ReadFile(dir + "/cgroup.procs")
			for _, field := range strings.Fields(string(data)) {
				if pid, _ := strconv.Atoi(field); pid > 1 && !seen[pid] {
					seen[pid] = true
					pids = append(pids, pid)
				}
			}
			if vanished(err) || errors.Is(err, unix.EOPNOTSUPP) {
				return nil // a threaded v2 group has no list of its own
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return pids, nil
}

func (h *Host) removeCgroups() error { return removeCgroupTrees(h.cgroup()) }

func removeLabCgroups(s state) error { return removeCgroupTrees(s.label()) }

// removeCgroupTrees removes path in every hierarchy, children first. A group
// stays busy for a moment after its last process died.
func removeCgroupTrees(path string) error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		err := walkCgroups(filepath.Join(mount, path), func(dir string) error {
			err := os.Remove(dir)
			for try := 0; errors.Is(err, unix.EBUSY) && try < 100; try++ {
				time.Sleep(20 * time.Millisecond)
				err = os.Remove(dir)
			}
			if vanished(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}

// walkCgroups visits a cgroup and all below it, children first.
func walkCgroups(dir string, visit func(dir string) error) error {
	entries, err := os.ReadDir(dir)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := walkCgroups(filepath.Join(dir, e.Name()), visit); err != nil {
			return err
		}
	}
	return visit(dir)
}

func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}
