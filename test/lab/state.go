package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stateRoot holds one folder per lab. It must be a real disk: the hosts'
// disks are overlays in it, and an overlay cannot lie on another.
const stateRoot = "/var/lib/kk-lab"

// maxLabs bounds the lab's number, which is the third byte of its subnet.
const maxLabs = 200

// state is what must outlive the process that made the lab.
type state struct {
	Name    string              `json:"name"`
	Number  int                 `json:"number"` // names the bridge and the subnet 10.77.Number.0/24
	N       int                 `json:"n"`
	RootFS  string              `json:"rootfs"` // lower layer of every host's disk
	Options map[int]HostOptions `json:"options,omitempty"`
}

func (s state) dir() string                { return filepath.Join(stateRoot, s.Name) }
func (s state) path(elem ...string) string { return filepath.Join(s.dir(), filepath.Join(elem...)) }

// label names what the lab makes in the kernel. A bridge's name has 15 bytes at most.
func (s state) label() string             { return "kklab" + strconv.Itoa(s.Number) }
func (s state) subnet() string            { return fmt.Sprintf("10.77.%d.0/24", s.Number) }
func (s state) gateway() string           { return fmt.Sprintf("10.77.%d.1", s.Number) }
func (s state) address(number int) string { return fmt.Sprintf("10.77.%d.%d", s.Number, 10+number) }

// lock lets one process at a time make or remove labs. The lock file stays:
// removing it would let two processes hold two different files.
func lock() (func(), error) {
	f, err := os.OpenFile("/run/lock/kk-lab", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lab's lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

func loadState(name string) (state, error) {
	s := state{Name: name}
	if !namePattern.MatchString(name) {
		return s, fmt.Errorf("lab name %q: use letters, digits, '-' and '_'", name)
	}
	data, err := os.ReadFile(s.path("lab.json"))
	if err != nil {
		return s, fmt.Errorf("find lab %s: %w", name, err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", s.path("lab.json"), err)
	}
	return s, nil
}

func (s state) save() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir(), 0o700); err != nil {
		return err
	}
	tmp := s.path("lab.json.new")
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, s.path("lab.json"))
}

// remove deletes the state folder, and what labs share when this was the last.
// It refuses while something is still mounted there: deleting through a mount
// would reach the cached root file system.
func (s state) remove() error {
	if err := unmountBelow(s.dir()); err != nil {
		return err
	}
	if err := os.RemoveAll(s.dir()); err != nil {
		return err
	}
	labs, err := List()
	if err != nil || len(labs) > 0 {
		return err
	}
	if err := errors.Join(restoreKernelSettings(), removeEmptyNamespaceFolder()); err != nil {
		return err
	}
	os.Remove(stateRoot) // stays while a lab that is not yet written down lies in it
	return nil
}

// List names the labs of this machine, running or not.
func List() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(stateRoot, "*", "lab.json"))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = filepath.Base(filepath.Dir(f))
	}
	sort.Strings(names)
	return names, nil
}

// openOrCreate takes the lab's state from disk, or gives a new lab the first
// free number and writes that down before anything else is made.
func openOrCreate(o Options, rootfs string) (*Lab, error) {
	s, err := loadState(o.Name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.RootFS = rootfs
		if s.Number, err = freeNumber(); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	s.N = max(s.N, o.N)
	if o.Hosts != nil {
		s.Options = o.Hosts
	}
	if err := s.save(); err != nil {
		return nil, fmt.Errorf("save the lab's state: %w", err)
	}
	l := fromState(s, o.Log)
	return l, l.ensureKeys()
}

func freeNumber() (int, error) {
	labs, err := List()
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, name := range labs {
		s, err := loadState(name)
		if err != nil {
			return 0, err
		}
		taken[s.Number] = true
	}
	for n := range maxLabs {
		if !taken[n] && !bridgeExists(n) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%d labs exist already: take some down", len(labs))
}

func bridgeExists(number int) bool {
	_, err := os.Stat("/sys/class/net/" + state{Number: number}.label())
	return err == nil
}

func fromState(s state, progress io.Writer) *Lab {
	l := &Lab{Name: s.Name, state: s, progress: progress}
	for number := 1; number <= s.N; number++ {
		l.Hosts = append(l.Hosts, &Host{
			Name:    "node" + strconv.Itoa(number),
			Address: s.address(number),
			Key:     s.path("id_ed25519"),
			lab:     l,
			number:  number,
		})
	}
	return l
}

// unmountBelow unmounts everything below dir, the last mounted first.
func unmountBelow(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(data), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		fields := strings.Fields(lines[i])
		if len(fields) < 5 || !strings.HasPrefix(fields[4], dir+"/") {
			continue
		}
		if err := detach(fields[4]); err != nil {
			return fmt.Errorf("unmount %s: %w", fields[4], err)
		}
	}
	return nil
}
