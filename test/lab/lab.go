// Package lab runs real hosts on one machine: Debian with systemd as PID 1,
// its own sshd, address, cgroups and disk, booted by systemd-nspawn in about
// three seconds. It needs root on a Debian machine and no container engine.
//
// A lab is found by its name. Everything that it makes (bridge, network
// namespaces, cgroups, NAT rules, mounts, processes) derives from the name's
// number and its state folder, so [Down] removes a lab that another process
// made, also when that process crashed.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"
)

// MaxHosts is the largest number of hosts in one lab.
const MaxHosts = 100

// bootLimit is how long hosts may take from power-on to an answering sshd.
const bootLimit = 60 * time.Second

// Options say which lab to bring up. The zero value is one host named node1
// in the lab "default".
type Options struct {
	Name  string // letters, digits, '-', '_'; "default" when empty
	N     int    // number of hosts; 1 when zero
	Cache string // where root file systems are kept; $KK_CACHE or ~/.cache/kk-lab when empty
	// Packages are of Debian, for all hosts beside the usual ones; they count when the lab is first made.
	Packages []string
	Hosts    map[int]HostOptions // what differs from an ordinary host, by index from 0
	Log      io.Writer           // progress; discarded when nil
}

// HostOptions make one host differ from the others. They count when the host
// is first made.
type HostOptions struct {
	Hostname  string   // kernel host name when not nodeN; may be one that no installer accepts, such as node_1
	MemoryMB  int      // memory of the host in MiB: a cgroup limit, and what /proc/meminfo shows; 0 is no limit
	Addresses []string // further addresses of its interface, as 192.168.7.1/24
	OwnKernel bool     // a kernel and a clock of its own, see uml.go
}

// Lab is a running lab.
type Lab struct {
	Name  string // as given to Up
	Hosts []*Host

	state    state
	progress io.Writer
}

// Host is one host of a lab.
type Host struct {
	Name    string // node1, node2, ...
	Address string // IPv4
	Key     string // path of the private key that root, ops and dev accept

	lab    *Lab
	number int // from 1
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,40}$`)

// Up brings the lab to what o describes and waits until every sshd answers.
// Hosts that run already are left alone, stopped ones start, and hosts beyond
// o.N are removed. When Up fails the lab is left as it is, for a look;
// [Down] removes it.
func Up(ctx context.Context, o Options) (*Lab, error) {
	o = withDefaults(o)
	if err := check(o); err != nil {
		return nil, err
	}
	if err := installTools(ctx, o.Log, needsUML(o.Hosts)); err != nil {
		return nil, err
	}
	unlock, err := lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	root, err := ensureRootFS(ctx, o.Cache, slices.Concat(packages, o.Packages), o.Log)
	if err != nil {
		return nil, err
	}
	l, err := openOrCreate(o, root)
	if err != nil {
		return nil, err
	}
	if err := l.raise(ctx, o.N); err != nil {
		return nil, fmt.Errorf("bring up lab %s: %w", o.Name, err)
	}
	return l, nil
}

// raise does the work of Up once the lab's state is on disk.
func (l *Lab) raise(ctx context.Context, n int) error {
	for _, h := range l.Hosts[n:] {
		if err := h.remove(ctx); err != nil {
			return err
		}
	}
	l.Hosts = l.Hosts[:n]
	l.state.N = n
	if err := l.state.save(); err != nil {
		return err
	}
	if err := errors.Join(raiseKernelSettings(), sealClock()); err != nil {
		return err
	}
	if err := ensureNetwork(ctx, l.state); err != nil {
		return err
	}
	for i := range l.Hosts {
		if err := l.start(ctx, i); err != nil {
			return err
		}
	}
	if err := l.writeInventory(); err != nil {
		return err
	}
	return l.waitForSSH(ctx)
}

// Open finds a lab that Up made; the error wraps fs.ErrNotExist when there is none.
func Open(name string) (*Lab, error) {
	s, err := loadState(name)
	if err != nil {
		return nil, err
	}
	return fromState(s, io.Discard), nil
}

// Down removes the lab and everything it made. A lab that does not exist is
// removed already.
func Down(ctx context.Context, name string) error {
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	l, err := Open(name)
	if errors.Is(err, os.ErrNotExist) {
		// At most a folder, of an Up that ended before it wrote down what it makes.
		return state{Name: name}.remove()
	}
	if err != nil {
		return err
	}
	return l.remove(ctx)
}

// Down is [Down] of this lab.
func (l *Lab) Down(ctx context.Context) error { return Down(ctx, l.Name) }

// remove goes on after an error: what can be removed is.
func (l *Lab) remove(ctx context.Context) error {
	var errs []error
	for _, h := range l.Hosts {
		errs = append(errs, h.remove(ctx))
	}
	errs = append(errs, removeNetwork(ctx, l.state), removeLabCgroups(l.state))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take down lab %s: %w", l.Name, err)
	}
	return l.state.remove()
}

// Dir is the folder of the lab's state: keys, inventory, disks, console logs.
func (l *Lab) Dir() string { return l.state.dir() }

// Inventory is the path of an inventory of the lab's hosts.
func (l *Lab) Inventory() string { return l.state.path("inventory.yaml") }

// KnownHosts is the path of a known_hosts file with the hosts' keys.
func (l *Lab) KnownHosts() string { return l.state.path("known_hosts") }

// PasswordFile is the path of a file, mode 0600, with the password of the user dev.
func (l *Lab) PasswordFile() string { return l.state.path("dev-password") }

func withDefaults(o Options) Options {
	if o.Name == "" {
		o.Name = "default"
	}
	if o.N == 0 {
		o.N = 1
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

func check(o Options) error {
	if !namePattern.MatchString(o.Name) {
		return fmt.Errorf("lab name %q: use letters, digits, '-' and '_' (at most 41)", o.Name)
	}
	if o.N < 1 || o.N > MaxHosts {
		return fmt.Errorf("a lab has 1 to %d hosts, not %d", MaxHosts, o.N)
	}
	return Usable()
}

// Gateway is the machine's address on the lab's bridge, where hosts reach it.
func (l *Lab) Gateway() string { return l.state.gateway() }
