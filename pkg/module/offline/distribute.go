package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/relay"
	"kubekey/pkg/relay/program"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func distributeSpec() module.Spec {
	return module.Spec{
		Name: "artifact_distribute", Collection: "kk",
		Summary: "Brings files and images of offline files to a folder of many hosts, which pass them on to each other.",
		Notes: []string{
			"A file has its SHA-256 digest, hexadecimal, as its name in the folder. Of an image, the blobs of the host's " +
				"platform are there, and its index.",
			"What a host has with the right bytes is not sent again. Compressed files travel compressed.",
			"In the mode relay, each host runs a small program while the module works. It serves its folder to the other " +
				"hosts over TLS, with certificates of this run, and ends with kk. A host that cannot run it, is slow, or is " +
				"not reached by others is served directly; warnings name it.",
			"The task fails if a host did not get everything; failed_hosts names those.",
			"It is skipped in check mode.",
		},
		Examples: []string{
			"- name: Distribute binaries\n  become: true\n  artifact_distribute:\n    artifact: [/srv/kubernetes.tar]\n" +
				"    hosts:\n      - {name: node1, address: 10.0.0.11, arch: amd64, files: [amd64/kubeadm]}\n" +
				"      - {name: node2, address: 10.0.0.12, arch: amd64, files: [amd64/kubeadm], " +
				"images: [\"registry.k8s.io/pause:3.10.1\"]}",
		},
		Returns: []module.Return{
			{Key: "dir", Type: "str", Doc: "folder on the hosts"},
			{Key: "arrived", Type: "int", Doc: "bytes that came to hosts"},
			{Key: "sent", Type: "int", Doc: "bytes of these that the control node sent"},
			{Key: "failed_hosts", Type: "list", Doc: "hosts that did not get everything"},
		},
		New:   func() module.Runner { return &distribute{program: program.For} },
		Where: module.Once, Check: module.Skips,
	}
}

type distribute struct {
	Artifact []string   `kk:"artifact,required" doc:"offline files on the control node"`
	Hosts    []receiver `kk:"hosts,required" doc:"hosts, and what each one needs"`
	Dir      string     `kk:"dir,path" default:"/var/lib/kubekey/blobs" doc:"folder on the hosts, for this module alone"`
	Mode     string     `kk:"mode" default:"auto" choices:"auto,direct,relay" doc:"who sends: the control node, or hosts too; auto: relay from 8 hosts on"`
	Port     int        `kk:"port" default:"0" doc:"TCP port that hosts listen on; 0 is any free one"`
	Rate     int        `kk:"rate" default:"0" doc:"bytes per second that each host, and the control node, sends at most; 0 is no limit"`

	program func(arch string) (program.Program, bool)
}

type receiver struct {
	Name    string   `kk:"name,required" doc:"name in the inventory"`
	Address string   `kk:"address" doc:"IP address that the other hosts reach it at; without one it is served directly"`
	Arch    string   `kk:"arch" default:"amd64" doc:"architecture, as Go names it"`
	Zone    string   `kk:"zone" doc:"hosts of one zone are close to each other: between zones, one copy is sent"`
	Files   []string `kk:"files" doc:"files that it needs, by their names in the catalog's cache"`
	Images  []string `kk:"images" doc:"images that it needs, by their full names"`
}

// relayFrom is the number of hosts from which on auto is relay.
const relayFrom = 8

// Rules implements schema.Ruled.
func (*distribute) Rules() schema.Rules {
	return schema.Rules{
		schema.Between("port", 0, 65535),
		schema.Looks("an absolute path below the root folder", isFolder, "dir"),
	}
}

func isFolder(path string) bool {
	return strings.HasPrefix(path, "/") && strings.Contains(strings.Trim(path, "/"), "/")
}

// Run implements module.Runner.
func (m *distribute) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if c.Connect == nil {
		return module.Result{}, errors.New("the engine provides no connections to other hosts")
	}
	set, err := c.OfflineFiles(m.Artifact)
	if err != nil {
		return module.Result{}, err
	}
	stock := newStock(set)
	needs, err := m.resolve(stock)
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	ca, err := relay.NewCA(c.Now())
	if err != nil {
		return module.Result{}, err
	}
	d := &distribution{distribute: m, call: c, stock: stock, ca: ca, rate: relay.NewLimiter(int64(m.Rate)),
		relays: m.Mode == "relay" || m.Mode == "auto" && len(m.Hosts) >= relayFrom}
	for i, h := range m.Hosts {
		d.hosts = append(d.hosts, &target{receiver: h, number: i, needs: needs[i], ready: make(chan struct{})})
	}
	return d.run(ctx)
}

// resolve finds what each host needs. Everything that is missing is reported.
func (m *distribute) resolve(s *stock) ([][]need, error) {
	needs := make([][]need, len(m.Hosts))
	var problems []error
	seen := map[string]bool{}
	for i, h := range m.Hosts {
		if seen[h.Name] {
			problems = append(problems, fmt.Errorf("the host %s is listed twice", h.Name))
		}
		seen[h.Name] = true
		for _, name := range h.Files {
			n, err := s.file(name)
			needs[i], problems = append(needs[i], n), append(problems, err)
		}
		for _, ref := range h.Images {
			list, err := s.image(ref, h.Arch)
			needs[i], problems = append(needs[i], list...), append(problems, err)
		}
		slices.SortFunc(needs[i], func(a, b need) int { return cmp.Compare(a.blob.Digest, b.blob.Digest) })
		needs[i] = slices.Compact(needs[i])
	}
	return needs, distinct(problems)
}

// distinct joins errors, each text once: many hosts need the same.
func distinct(problems []error) error {
	var out []error
	seen := map[string]bool{}
	for _, err := range problems {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// maxConnects is how many hosts are prepared at a time.
const maxConnects = 32

// distribution is one call.
type distribution struct {
	*distribute
	call   *module.Call
	stock  *stock
	ca     *relay.CA
	rate   *relay.Limiter
	relays bool
	hosts  []*target
	slots  chan struct{} // hosts that are being prepared

	mu       sync.Mutex
	warnings []string
}

// target is a host.
type target struct {
	receiver
	number int
	needs  []need
	conn   connector.Connector

	ready chan struct{} // closed when it is known how it is served
	node  keeper        // what serves it
	err   error
	did   bool // something was unpacked
}

// keeper is a host that stores blobs.
type keeper interface {
	relay.Node
	Unpack(ctx context.Context, packed, content relay.Blob) error
	Remove(ctx context.Context, b relay.Blob) error
	Close() error
}

// maxWarnings is how many warnings a result has.
const maxWarnings = 50

func (d *distribution) warn(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.warnings) < maxWarnings {
		d.warnings = append(d.warnings, text)
	}
}

// run keeps the program running on each host, for as long as the distribution takes.
func (d *distribution) run(ctx context.Context) (module.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.slots = make(chan struct{}, maxConnects)
	var report relay.Report
	var failed []string
	var err error
	module.Parallel(len(d.hosts)+1, len(d.hosts)+1, func(i int) {
		if i < len(d.hosts) {
			d.attend(ctx, d.hosts[i])
			return
		}
		defer d.closeAll() // what attends them returns
		report, failed, err = d.distributeAll(ctx)
	})
	if err != nil {
		return module.Result{}, err
	}
	changed := report.Arrived > 0 || slices.ContainsFunc(d.hosts, func(t *target) bool { return t.did })
	r := module.Result{Changed: changed, Warnings: d.warnings, Data: value.NewDict("dir", d.Dir,
		"arrived", int(report.Arrived), "sent", int(report.Sent), "failed_hosts", value.Of(failed))}
	if len(failed) > 0 {
		r.Failed = true
		r.Msg = "not everything came to these hosts: run again when this is fixed\n- " +
			strings.Join(d.reasons(report), "\n- ")
	}
	return r, nil
}

func (d *distribution) closeAll() {
	for _, t := range d.hosts {
		<-t.ready
		if t.node != nil {
			_ = t.node.Close() // it exits
		}
	}
}

func (d *distribution) reasons(report relay.Report) []string {
	var out []string
	for _, t := range d.hosts {
		if t.err != nil {
			out = append(out, t.Name+": "+t.err.Error())
		}
	}
	for _, err := range report.Failed {
		out = append(out, err.Error())
	}
	return out
}

// distributeAll brings everything to all hosts. Hosts that do not get it are returned by name.
func (d *distribution) distributeAll(ctx context.Context) (relay.Report, []string, error) {
	var up []*target
	for _, t := range d.hosts {
		if <-t.ready; t.err == nil {
			up = append(up, t)
		}
	}
	members, nodes := make([]relay.Member, len(up)), make([]relay.Node, len(up))
	module.Parallel(len(up), maxConnects, func(i int) {
		t := up[i]
		var blobs []relay.Blob
		if blobs, t.err = t.missing(ctx); t.err != nil {
			blobs = nil
		}
		members[i], nodes[i] = relay.Member{Name: t.Name, Zone: t.Zone, Blobs: blobs}, t.node
	})
	if ctx.Err() != nil {
		return relay.Report{}, nil, ctx.Err()
	}
	o := relay.Options{Direct: !d.relays, Notify: func(e relay.Event) { d.warn(e.String()) }}
	if o.Direct {
		o.Sends = directSends
	}
	if d.call.Progress != nil {
		o.Progress = func(done, total int64) { d.call.Progress("distribute", done, total) }
	}
	report, err := relay.Run(ctx, members, nodes, o)
	if err != nil {
		return report, nil, err
	}
	module.Parallel(len(up), maxConnects, func(i int) {
		if t := up[i]; t.err == nil && !slices.Contains(report.GivenUp, i) {
			t.did, t.err = t.unpack(ctx)
		}
	})
	var failed []string
	for _, t := range d.hosts {
		if t.err != nil || slices.ContainsFunc(report.GivenUp, func(i int) bool { return up[i] == t }) {
			failed = append(failed, t.Name)
		}
	}
	return report, failed, ctx.Err()
}

// directSends is how many hosts the control node sends to at a time where it sends everything.
const directSends = 8

// missing returns the blobs that the host may lack. A packed file is not needed where its content is.
func (t *target) missing(ctx context.Context) ([]relay.Blob, error) {
	var blobs, packed, contents []relay.Blob
	for _, n := range t.needs {
		if n.packed() {
			packed, contents = append(packed, n.blob), append(contents, n.content)
		} else {
			blobs = append(blobs, n.blob)
		}
	}
	has, err := t.node.Has(ctx, contents)
	if err != nil {
		return nil, err
	}
	for i, b := range packed {
		if !has[i] {
			blobs = append(blobs, b)
		}
	}
	return blobs, nil
}

// unpack unpacks what came packed, and removes it.
func (t *target) unpack(ctx context.Context) (did bool, err error) {
	for _, n := range t.needs {
		if !n.packed() {
			continue
		}
		has, err := t.node.Has(ctx, []relay.Blob{n.content})
		if err != nil {
			return did, err
		}
		if !has[0] {
			if err := t.node.Unpack(ctx, n.blob, n.content); err != nil {
				return did, err
			}
			did = true
		}
		if err := t.node.Remove(ctx, n.blob); err != nil {
			return did, err
		}
	}
	return did, nil
}
