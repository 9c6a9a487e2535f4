package offline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func packagesSpec() module.Spec {
	return module.Spec{
		Name: "artifact_packages", Collection: "kk",
		Summary: "Fetches packages of a distribution with everything that they depend on, as a repository.",
		Notes: []string{
			"The distribution's own package manager resolves in an empty root, for any architecture: apt-get or dnf of " +
				"the control node, without root, or of a host that runs the distribution.",
			"The sources are sources. Without them they are those of the machine that resolves, if it runs the " +
				"distribution, and then defaults.",
			"Packages are verified by the signed metadata of their sources. Packages in the cache are not fetched again.",
			"The repository has fresh metadata. The same packages make the same bytes.",
			"With remote nothing remains on the host: everything there happens in a temporary directory.",
			"In check mode nothing is resolved.",
		},
		Examples: []string{
			"- name: Fetch packages\n  artifact_packages:\n    cache: /var/cache/app\n    distribution: debian-12\n" +
				"    arch: amd64\n    manager: apt\n    names: [conntrack, socat]",
		},
		Returns: []module.Return{
			{Key: "files", Type: "list of dict", Doc: "files of the repository, as artifact_export reads them"},
			{Key: "dir", Type: "str", Doc: "directory of the repository on the control node"},
			{Key: "fetched", Type: "int", Doc: "number of packages fetched"},
			{Key: "bytes", Type: "int", Doc: "bytes of the packages fetched"},
		},
		New: func() module.Runner { return &packages{} },
	}
}

type packages struct {
	Cache        string        `kk:"cache,required,path" doc:"directory on the control node for packages and repositories"`
	Distribution string        `kk:"distribution,required" doc:"ID and version as in os-release, such as debian-12"`
	Arch         string        `kk:"arch,required" choices:"amd64,arm64" doc:"architecture of the hosts"`
	Manager      string        `kk:"manager,required" choices:"apt,dnf" doc:"package manager of the distribution"`
	Names        []string      `kk:"names,required,alias=name" doc:"names of packages"`
	Sources      origin        `kk:"sources" doc:"where packages come from"`
	Defaults     origin        `kk:"defaults" doc:"sources of a machine that does not run the distribution"`
	Remote       bool          `kk:"remote" doc:"the task runs on a host with sources of its own, and not on the control node"`
	Proxy        redact.Secret `kk:"proxy" doc:"URL of the proxy of the control node"`
}

type origin struct {
	Sources []string `kk:"sources" doc:"lines of sources.list; for dnf, base URLs"`
	Keyring string   `kk:"keyring,path" doc:"keys that sign them, a file on the control node"`
}

// Rules implements schema.Ruled.
func (*packages) Rules() schema.Rules {
	return schema.Rules{
		schema.Parses("ID-VERSION, such as debian-12", isDistribution, "distribution"),
		schema.Parses("names of packages", isPackageName, "names"),
		schema.Address("proxy", "http", "https"),
	}
}

var (
	distributionForm = regexp.MustCompile(`^[A-Za-z0-9._]+(-[A-Za-z0-9._]+)+$`)
	packageForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._:~=-]*$`)
	fileForm         = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._~^-]*$`)
)

func isDistribution(text string) error {
	if !distributionForm.MatchString(text) {
		return fmt.Errorf("%q is not a distribution: write ID-VERSION, such as debian-12", text)
	}
	return nil
}

func isPackageName(text string) error {
	if !packageForm.MatchString(text) {
		return fmt.Errorf("%q is not the name of a package", text)
	}
	return nil
}

// pkg is a package that was resolved.
type pkg struct {
	name, version, arch string
	sha256              string
	size                int64
	spec                string // what the package manager fetches it by
	fetched             string // name of the file that it is fetched to
	file                string // path in the repository
	record              string // its metadata
}

// resolver is a package manager in an empty root on one machine.
type resolver interface {
	// resolve returns the packages and everything that they depend on.
	resolve(ctx context.Context) ([]pkg, error)
	// fetch fetches packages into the directory that it returns, on the machine.
	fetch(ctx context.Context, specs []string) (dir string, err error)
	// metadata returns the files of a repository beside its packages, by their paths.
	metadata(ctx context.Context, repository string, all []pkg) (map[string][]byte, error)
	// close removes temporary files from the machine.
	close() error
}

// Run implements module.Runner.
func (m *packages) Run(ctx context.Context, c *module.Call) (result module.Result, err error) {
	if c.Check {
		return module.Result{Changed: true, Msg: fmt.Sprintf("would fetch %d packages for %s %s with their dependencies",
			len(m.Names), m.Distribution, m.Arch)}, nil
	}
	r, err := m.resolver(c.Conn)
	if err != nil {
		return module.Result{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	all, err := r.resolve(ctx)
	if err != nil {
		return module.Result{}, m.failed(err)
	}
	slices.SortFunc(all, func(a, b pkg) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version), cmp.Compare(a.arch, b.arch))
	})
	lacks := m.lacking(all)
	if err := m.fetchAll(ctx, c, r, lacks); err != nil {
		return module.Result{}, m.failed(err)
	}
	changed, files, err := m.repository(ctx, r, all)
	if err != nil {
		return module.Result{}, m.failed(err)
	}
	return module.Result{Changed: changed || len(lacks) > 0, Data: value.NewDict("files", files, "dir", m.dir(),
		"fetched", len(lacks), "bytes", int(sizeOf(lacks)))}, nil
}

func (m *packages) failed(err error) error {
	return fmt.Errorf("packages for %s %s: %w", m.Distribution, m.Arch, err)
}

// dir is the repository, relative to the cache as a file of the catalog is.
func (m *packages) dir() string { return filepath.Join(m.Cache, filepath.FromSlash(m.below(""))) }

func (m *packages) below(file string) string {
	return path.Join("packages", m.Distribution, m.Arch, file)
}

// stored is where the content with a digest is kept.
func (m *packages) stored(sha string) string {
	return filepath.Join(m.Cache, "packages", "sha256", sha)
}

// lacking returns the packages that the cache lacks, each content once.
func (m *packages) lacking(all []pkg) []pkg {
	var lacks []pkg
	seen := map[string]bool{}
	for _, p := range all {
		info, err := os.Stat(m.stored(p.sha256))
		if !seen[p.sha256] && (err != nil || info.Size() != p.size) {
			lacks = append(lacks, p)
		}
		seen[p.sha256] = true
	}
	return lacks
}

func sizeOf(all []pkg) int64 {
	var size int64
	for _, p := range all {
		size += p.size
	}
	return size
}

// batch is how many packages are fetched between two reports of the progress.
const batch = 16

func (m *packages) fetchAll(ctx context.Context, c *module.Call, r resolver, lacks []pkg) error {
	total, done := sizeOf(lacks), int64(0)
	for some := range slices.Chunk(lacks, batch) {
		var specs []string
		for _, p := range some {
			specs = append(specs, p.spec)
		}
		dir, err := r.fetch(ctx, specs)
		if err != nil {
			return err
		}
		for _, p := range some {
			if err := m.keep(ctx, c.Conn, p, path.Join(dir, p.fetched)); err != nil {
				return fmt.Errorf("%s %s: %w", p.name, p.version, err)
			}
		}
		if done += sizeOf(some); c.Progress != nil {
			c.Progress("packages "+m.Distribution+" "+m.Arch, done, total)
		}
	}
	return nil
}

// keep moves a fetched package from the machine into the cache, if it is what its metadata says.
func (m *packages) keep(ctx context.Context, conn connector.Connector, p pkg, from string) error {
	dest := m.stored(p.sha256)
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(dest), ".*.part")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails once it is renamed
	got, err := m.read(ctx, conn, from, &atMost{f, p.size})
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if got != p.sha256 {
		return fmt.Errorf("what was fetched has the sha256 %s, and its signed metadata has %s: export again", got, p.sha256)
	}
	// Metadata has the times of packages. When a file was read stays: prune asks for it.
	if err := errors.Join(os.Chtimes(f.Name(), time.Time{}, epoch), os.Rename(f.Name(), dest)); err != nil || m.Remote {
		return err
	}
	if m.Manager == "dnf" {
		return nil // its next run finds the file there; it sets times, so this is no link
	}
	return os.Remove(from)
}

var epoch = time.Unix(0, 0)

func (m *packages) read(ctx context.Context, conn connector.Connector, from string, to io.Writer) (string, error) {
	if m.Remote {
		return connector.Get(ctx, conn, from, to, nil)
	}
	src, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer func() { _ = src.Close() }() // only read
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, h), src)
	return hex.EncodeToString(h.Sum(nil)), err
}

// atMost fails when more bytes are written than are left.
type atMost struct {
	io.Writer
	left int64
}

func (w *atMost) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, errors.New("it is larger than its signed metadata says: export again")
	}
	return w.Writer.Write(p)
}

// repository makes the directory of the repository, and describes its files.
func (m *packages) repository(ctx context.Context, r resolver, all []pkg) (changed bool, files []any, err error) {
	desired := map[string]bool{}
	for _, p := range all {
		desired[p.file] = true
		linked, err := link(m.stored(p.sha256), filepath.Join(m.dir(), filepath.FromSlash(p.file)))
		if err != nil {
			return false, nil, err
		}
		changed = changed || linked
		files = append(files, value.NewDict("name", p.name, "version", p.version, "arch", p.arch,
			"distribution", m.Distribution, "file", m.below(p.file), "sha256", p.sha256))
	}
	metadata, err := r.metadata(ctx, m.dir(), all)
	if err != nil {
		return false, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		desired[name] = true
		wrote, err := write(filepath.Join(m.dir(), filepath.FromSlash(name)), metadata[name])
		if err != nil {
			return false, nil, err
		}
		changed = changed || wrote
		sum := sha256.Sum256(metadata[name])
		files = append(files, value.NewDict("name", path.Base(name), "version", "", "arch", m.Arch,
			"distribution", m.Distribution, "file", m.below(name), "sha256", hex.EncodeToString(sum[:])))
	}
	removed, err := clean(m.dir(), desired)
	return changed || removed, files, err
}

// link makes dest the same file as src, or a copy where links are not possible.
func link(src, dest string) (changed bool, err error) {
	from, err := os.Stat(src)
	if err != nil {
		return false, err
	}
	if to, err := os.Stat(dest); err == nil && os.SameFile(from, to) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return false, err
	}
	if err := os.Remove(dest); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if os.Link(src, dest) == nil {
		return true, nil
	}
	f, err := os.Open(src)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // only read
	to, err := os.Create(dest)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(to, f)
	return true, errors.Join(err, to.Close(), os.Chtimes(dest, time.Time{}, epoch))
}

// write replaces a file, unless it has the content.
func write(name string, content []byte) (changed bool, err error) {
	if have, err := os.ReadFile(name); err == nil && string(have) == string(content) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, err
	}
	part := name + ".part"
	if err := os.WriteFile(part, content, 0o644); err != nil {
		return false, err
	}
	return true, os.Rename(part, name)
}

// clean removes the files of a repository that it no longer has.
func clean(dir string, desired map[string]bool) (changed bool, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || desired[filepath.ToSlash(rel)] {
			return err
		}
		changed = true
		return os.Remove(name)
	})
	return changed, err
}

func (m *packages) resolver(conn connector.Connector) (resolver, error) {
	work := filepath.Join(m.Cache, "packages", "."+m.Distribution+"-"+m.Arch)
	if m.Remote {
		work = ""
	} else if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	if strings.ContainsAny(work, "\"\\\n;") {
		return nil, fmt.Errorf("the directory %s has characters that apt cannot read: use another one", m.Cache)
	}
	if m.Manager == "dnf" {
		return newDnf(m, conn, work)
	}
	return newApt(m, conn, work)
}

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

func isSHA256(text string) bool { return sha256Form.MatchString(text) }
