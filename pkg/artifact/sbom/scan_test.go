package sbom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/artifact"
)

// small are limits that tests reach.
var small = limits{entries: 5, unpacked: 1 << 20, ratio: 2, program: 8 << 20, database: 4 << 10, peeked: 1 << 20,
	found: 10, texts: 4 << 10, problems: 3}

func scanned(t testing.TB, text []byte, layer bool, l limits) *contents {
	t.Helper()
	s, err := newScanner(t.Context(), t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	return s.scan(bytes.NewReader(text), int64(len(text)), layer)
}

func TestDebianPackages(t *testing.T) {
	want := pack{Type: "deb", Name: "hello-kk", Version: "1:2.0+b1", Architecture: "arm64", Source: "hello"}
	for _, compression := range []string{"xz", "gzip", "zstd", "none"} {
		c := scanned(t, debianPackage(t, compression), false, defaultLimits)
		if got := c.Databases[controlFile]; len(got) != 1 || got[0] != want || len(c.Problems) > 0 {
			t.Errorf("%s: found %+v, want %+v; problems %q", compression, got, want, c.Problems)
		}
	}
}

func TestArchiveOfDebianPackages(t *testing.T) {
	o := newOffline(t)
	o.file(artifact.Item{Kind: artifact.KindPackage, Name: "packages", Distribution: "ubuntu-24.04"},
		gzipped(t, tarOf(t, entry{"pool/hello.deb", debianPackage(t, "zstd")}, entry{"pool/none.deb", []byte("x")})))
	doc := checkSPDX(t, document(t, o.open(), "", SPDX))
	if len(doc.Packages) != 2 || !strings.Contains(doc.Packages[0].PackageComment, "pool/none.deb") ||
		doc.Packages[1].PackageExternalReferences[0].Locator !=
			"pkg:deb/ubuntu/hello-kk@1:2.0%2Bb1?arch=arm64&distro=ubuntu-24.04" {
		t.Errorf("found %+v %+v", doc.Packages[0], doc.Packages[1:])
	}
}

// TestInstalledPackages compares with dpkg itself, where this machine has it.
func TestInstalledPackages(t *testing.T) {
	fields := "${db:Status-Status} ${Package} ${Version} ${Architecture}\n"
	out, err := exec.Command("dpkg-query", "-W", "-f", fields).Output()
	if err != nil {
		t.Skip("dpkg-query does not run here")
	}
	f, err := os.Open("/" + dpkgStatus)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var got []string
	if err := readDpkg(f, func(p pack) error {
		got = append(got, "installed "+p.Name+" "+p.Version+" "+p.Architecture)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(s string) bool {
		return !strings.HasPrefix(s, "installed ")
	})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("found %d packages, and dpkg has %d:\n%q\n%q", len(got), len(want), got, want)
	}
}

// TestModules compares with what the go command lists of kk itself.
func TestModules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kk")
	if out, err := exec.Command("go", "build", "-o", path, "kubekey/cmd/kk").CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
	out, err := exec.Command("go", "version", "-m", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); f[0] == "dep" {
			want = append(want, f[1]+"@"+f[2])
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := scanned(t, text, false, defaultLimits)
	p := c.Programs[""]
	var got []string
	for _, m := range p.Modules {
		got = append(got, m.Path+"@"+m.Version)
	}
	if p.Go != runtime.Version() || p.Main.Path != "kubekey" || p.Path != "kubekey/cmd/kk" || len(c.Problems) > 0 ||
		!slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("found %+v, problems %q, want the modules %q", p, c.Problems, want)
	}
}

func TestOtherPrograms(t *testing.T) {
	for _, name := range []string{"/bin/sh", "/bin/bash", "/usr/bin/dpkg"} {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if c := scanned(t, text, false, defaultLimits); !c.Read || len(c.Programs)+len(c.Problems) > 0 {
			t.Errorf("%s: found %+v", name, c)
		}
	}
}

func TestLayersAreLaidOverEachOther(t *testing.T) {
	lower, upper := newContents(), newContents()
	for _, name := range []string{"a", "dir/b", "dir/sub/c", "dirt", "kept"} {
		lower.Programs[name] = program{Go: "lower"}
	}
	upper.Programs["a"] = program{Go: "upper"}
	upper.Programs["dir/new"] = program{Go: "upper"}
	for _, name := range []string{"dir/.wh..wh..opq", ".wh.dirt"} {
		removed, ok := removes(name)
		if !ok {
			t.Errorf("%s removes nothing", name)
		}
		upper.Removed = append(upper.Removed, removed)
	}
	lower.layer(upper)
	if got := slices.Sorted(maps.Keys(lower.Programs)); !slices.Equal(got, []string{"a", "dir/new", "kept"}) ||
		lower.Programs["a"].Go != "upper" {
		t.Errorf("what is left is %v", lower.Programs)
	}
	everything := newContents()
	everything.Removed = []string{"/"}
	if lower.layer(everything); len(lower.Programs) > 0 {
		t.Errorf("what is left is %v", lower.Programs)
	}
	if removed, ok := removes("dir/file"); ok {
		t.Errorf("a file removes %s", removed)
	}
}

// sparse is a tar whose file of this size is a hole.
func sparse(size string) []byte {
	h := make([]byte, 512)
	copy(h, "hole")
	copy(h[100:], "0000644\x00")
	copy(h[124:], "00000000000\x00")
	h[156] = 'S' // GNU sparse
	copy(h[257:], "ustar  \x00")
	copy(h[386:], "00000000000\x0000000000000\x00") // no data at 0
	copy(h[483:], size+"\x00")
	for i := range 8 {
		h[148+i] = ' '
	}
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], []byte{'0' + byte(sum>>15&7), '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7),
		'0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	return append(h, make([]byte, 1024)...)
}

// elfWith is an ELF file whose header says that it has sections, where there are none.
func elfWith(sections uint16) []byte {
	b := make([]byte, shortest)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(b[16:], 2)    // executable
	binary.LittleEndian.PutUint16(b[18:], 62)   // x86-64
	binary.LittleEndian.PutUint32(b[20:], 1)    // version
	binary.LittleEndian.PutUint64(b[40:], 4096) // section headers
	binary.LittleEndian.PutUint16(b[52:], 64)
	binary.LittleEndian.PutUint16(b[58:], 64) // size of each
	binary.LittleEndian.PutUint16(b[60:], sections)
	return b
}

func TestHostile(t *testing.T) {
	p := built(t)
	zeros := make([]byte, 3<<20)
	deb := debianPackage(t, "xz")
	status := func(n int) []byte {
		var b bytes.Buffer
		for i := range n {
			b.WriteString("Package: p" + strings.Repeat("x", i) + "\nVersion: 1\n\n")
		}
		return b.Bytes()
	}
	ar := func(name, size string, text []byte) []byte {
		field := func(s string, n int) string { return s + strings.Repeat(" ", n-len(s)) }
		return append([]byte("!<arch>\n"+field("debian-binary", 16)+strings.Repeat(" ", 32)+field("4", 10)+"`\n2.0\n"+
			field(name, 16)+strings.Repeat(" ", 32)+field(size, 10)+"`\n"), text...)
	}
	for _, c := range []struct {
		name    string
		text    []byte
		layer   bool
		problem string
	}{
		{"gzip that is cut off", gzipped(t, tarOf(t, entry{"p", p}))[:100], true, "unexpected EOF"},
		{"gzip of zeros", gzipped(t, zeros), true, ""}, // is the end of a tar
		{"gzip bomb", gzipped(t, tarOf(t, entry{"zeros", zeros})), true, "unpacks to more than"},
		{"zstd bomb", zstandard(t, tarOf(t, entry{"zeros", zeros})), true, "unpacks to more than"},
		{"zip bomb", zipOf(t, entry{"zeros", append([]byte("MZ"), zeros...)}), false, "unpacks to more than"},
		{"zstd that is none", []byte("\x28\xb5\x2f\xfdxxxxxxxxxx"), true, "could not be read"},
		{"layer that is no tar", []byte(strings.Repeat("hello ", 1000)), true, "invalid tar header"},
		{"sparse file", sparse("77777777777"), true, ""}, // begins with zeros, so it is no program
		{"many entries", tarOf(t, slices.Repeat([]entry{{"x", nil}}, 6)...), true, "more than 5 entries"},
		{"many packages", tarOf(t, entry{dpkgStatus, status(11)}), true, "too many"},
		{"large database", tarOf(t, entry{dpkgStatus, slices.Repeat([]byte(" \n"), 4<<10)}), true, "more than 4096 bytes"},
		{"large apk database", tarOf(t, entry{"lib/apk/db/installed", slices.Repeat([]byte("x\n"), 4<<10)}), true,
			"more than 4096 bytes"},
		{"long texts", tarOf(t, entry{dpkgStatus, status(5)}, entry{dpkgParts + "/" + strings.Repeat("d", 200),
			[]byte("Package: " + strings.Repeat("p", 2000) + "\nVersion: " + strings.Repeat("1", 2000) + "\n")},
			entry{dpkgParts + "/b", []byte("Package: " + strings.Repeat("p", 1500) + "\nVersion: " + strings.Repeat("1", 2000))},
			entry{dpkgParts + "/c", []byte("Package: q\nVersion: " + strings.Repeat("1", 1500))}), true, "too many"},
		{"many archives of packages", tarOf(t, slices.Repeat([]entry{{"p.deb", ar("control.tar.gz", "9999", gzipped(t,
			tarOf(t, entry{"control", status(4)})))}}, 5)...), false, "too many"},
		{"many empty databases", tarOf(t, slices.Repeat([]entry{{dpkgParts + "/" + strings.Repeat("d", 900), nil}}, 5)...),
			true, "too many"},
		{"ELF with broken sections", elfWith(9), false, ""},
		{"ELF with many sections", elfWith(0xfeff), false, "had to be read"},
		{"database of RPM", tarOf(t, entry{"var/lib/rpm/rpmdb.sqlite", []byte("x")}), true, "RPM"},
		{"package that is cut off", deb[:90], false, "EOF"},
		{"package without control", ar("data.tar", "4", []byte("data")), false, "EOF"},
		{"package with a negative size", ar("control.tar", "-1", nil), false, "no valid size"},
		{"package of unknown compression", ar("control.tar.lzma", "4", []byte("data")), false, "control.tar.lzma"},
		{"xz with a dictionary of 4 GiB", ar("control.tar.xz", "60", xzWith(40)), false, "dictionary"},
		{"xz with another filter", ar("control.tar.xz", "60", bytes.Replace(xzWith(20), []byte{0x21, 1}, []byte{4, 0}, 1)),
			false, "other filters"},
		{"zip that is cut off", zipOf(t, entry{"p", p})[:5000], false, "zip: not a valid zip file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := scanned(t, c.text, c.layer, small)
			all := strings.Join(found.Problems, "\n")
			if c.problem == "" && all != "" || !strings.Contains(all, c.problem) {
				t.Errorf("problems are %q, want %q", found.Problems, c.problem)
			}
			if len(found.Problems) > small.problems {
				t.Errorf("%d problems", len(found.Problems))
			}
		})
	}
}

// xzWith is the start of an .xz file whose dictionary has a size.
func xzWith(dictionary byte) []byte {
	b := []byte(xzStart + "\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01")
	return append(append(b, dictionary), make([]byte, 60)...)
}

func TestNamesAreText(t *testing.T) {
	c := scanned(t, tarOf(t, entry{dpkgStatus, []byte("Package: a\x1b[31m\xffb\nVersion: 1\x00\n")}), true, small)
	if got := c.Databases[dpkgStatus]; len(got) != 1 || got[0].Name != "a[31m\uFFFDb" || got[0].Version != "1" {
		t.Errorf("found %+q", got)
	}
}

// TestSecondFileOfOneName checks that the last one counts, as when the layer is unpacked.
func TestSecondFileOfOneName(t *testing.T) {
	c := scanned(t, tarOf(t, entry{"./" + dpkgStatus, []byte("Package: a\nVersion: 1\n")},
		entry{"x/../" + dpkgStatus, []byte("Package: b\nVersion: 1\n")}), true, small)
	if got := c.Databases[dpkgStatus]; len(got) != 1 || got[0].Name != "b" {
		t.Errorf("found %+v", got)
	}
}

// broken is a source that fails for some blobs.
type broken struct {
	*artifact.File
	content string // of the item with this name
}

var errDisk = errors.New("disk error")

func (b broken) Content(i artifact.Item) (io.ReadCloser, error) {
	if i.Name == b.content {
		return nil, errDisk
	}
	return b.File.Content(i)
}

func TestUnreadableContentIsNoError(t *testing.T) {
	f, cache := all(t), t.TempDir()
	text, err := Make(t.Context(), f.Manifest, broken{f, "kubeadm"}, cache, SPDX)
	if err != nil {
		t.Fatal(err)
	}
	doc := checkSPDX(t, text)
	for _, p := range doc.Packages {
		got := strings.Contains(p.PackageComment, "problem: could not be read: disk error")
		if got != (p.PackageName == "kubeadm") {
			t.Errorf("%s: %s", p.PackageName, p.PackageComment)
		}
	}
	if whole := document(t, f, cache, SPDX); bytes.Contains(whole, []byte("disk error")) {
		t.Error("the error was kept in the cache")
	}
}

func TestDamagedBlobs(t *testing.T) {
	f := all(t)
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte(f.Manifest.Items[0].Blob[7:])) // in the manifest, then in the names of entries
	if at < 0 {
		t.Fatal("no blob")
	}
	damaged := 0
	for i := range f.Manifest.Blobs {
		name := []byte("blobs/sha256/" + strings.TrimPrefix(f.Manifest.Blobs[i].Digest, "sha256:"))
		text[bytes.LastIndex(text, name)+512+int(f.Manifest.Blobs[i].Size)-1] ^= 1
		damaged++
	}
	path := filepath.Join(t.TempDir(), "damaged.tar")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	cache := t.TempDir()
	doc := checkSPDX(t, document(t, d, cache, SPDX))
	for _, p := range doc.Packages {
		if !strings.Contains(p.PackageComment, "problem: could not be read: ") {
			t.Errorf("%s: %s", p.PackageName, p.PackageComment)
		}
	}
	if len(doc.Packages) != len(f.Manifest.Items) || damaged == 0 {
		t.Errorf("%d packages, want the %d items alone", len(doc.Packages), len(f.Manifest.Items))
	}
	if kept, _ := os.ReadDir(cache); len(kept) > 0 {
		t.Errorf("%d damaged blobs are in the cache", len(kept))
	}
}

// TestFullDisk checks that a scratch file that cannot be written is not taken for broken content.
func TestFullDisk(t *testing.T) {
	p := built(t)
	for _, text := range [][]byte{p, zipOf(t, entry{"p", p})} {
		s, err := newScanner(t.Context(), t.TempDir(), defaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.close(); err != nil { // all that is written fails
			t.Fatal(err)
		}
		if s.scan(bytes.NewReader(text), int64(len(text)), false); s.failed == nil {
			t.Error("no failure is recorded")
		}
	}
}

func TestContextEnds(t *testing.T) {
	f, cache := all(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, f.Manifest, f, cache, SPDX); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if _, err := Make(ctx, f.Manifest, cancelling{f, cancel}, cache, SPDX); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if _, err := Make(ctx, f.Manifest, endless{f, cancel}, cache, SPDX); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if kept, _ := os.ReadDir(cache); len(kept) > 0 {
		t.Errorf("%d files are in the cache", len(kept))
	}
}

// cancelling ends the context when the first content is read.
type cancelling struct {
	*artifact.File
	cancel func()
}

func (c cancelling) Content(i artifact.Item) (io.ReadCloser, error) {
	c.cancel()
	return c.File.Content(i)
}

// endless has content that does not end by itself.
type endless struct {
	*artifact.File
	cancel func()
}

func (e endless) Content(artifact.Item) (io.ReadCloser, error) { return io.NopCloser(e), nil }

func (e endless) Read(p []byte) (int, error) {
	e.cancel()
	return len(p), nil
}

func FuzzDpkg(f *testing.F) {
	f.Add([]byte(debianStatus))
	f.Add([]byte("Package:a\nversion:1\n\nStatus: x\n\x00:"))
	fuzzDatabase(f, readDpkg)
}

func FuzzApk(f *testing.F) {
	f.Add([]byte(alpineInstalled))
	f.Add([]byte("P:a\nV:1\n\nP\n:\n"))
	fuzzDatabase(f, readApk)
}

func fuzzDatabase(f *testing.F, read func(io.Reader, func(pack) error) error) {
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		err := read(bytes.NewReader(text), func(p pack) error {
			if p.Name == "" || p.Version == "" || len(p.Name) > longest*3 || strings.ContainsAny(p.Name, "\x00\n\x1b") {
				t.Errorf("found %+q", p)
			}
			if n++; n > 10 {
				return errTooMany
			}
			return nil
		})
		if err != nil && (!errors.Is(err, errTooMany) || n != 11) {
			t.Error(err)
		}
	})
}

func FuzzScan(f *testing.F) {
	tiny := []byte("\x7fELF\x02\x01\x01")
	for _, layer := range []bool{true, false} {
		f.Add(tarOf(f, entry{dpkgStatus, []byte(debianStatus)}, entry{"etc/os-release", []byte(debianRelease)}), layer)
		f.Add(gzipped(f, tarOf(f, entry{"lib/apk/db/installed", []byte(alpineInstalled)}, entry{".wh.x", nil})), layer)
		f.Add(zstandard(f, tarOf(f, entry{"bin/x", tiny})), layer)
		f.Add(zipOf(f, entry{"bin/x", elfWith(2)}), layer)
		f.Add(sparse("00000200000"), layer)
		f.Add(elfWith(3), layer)
	}
	if _, err := exec.LookPath("dpkg-deb"); err == nil {
		f.Add(debianPackage(f, "xz"), false)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, layer bool) {
		s, err := newScanner(t.Context(), dir, small)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.close() }()
		found := s.scan(bytes.NewReader(text), int64(len(text)), layer)
		if s.found > small.found+1 || s.texts > small.texts+5*longest || len(found.Problems) > small.problems {
			t.Errorf("found %d of %d bytes, %d problems", s.found, s.texts, len(found.Problems))
		}
		for _, write := range []func(*inventory) ([]byte, error){writeSPDX, writeCycloneDX} {
			inv := &inventory{components: map[string]*component{}}
			item := artifact.Item{Kind: artifact.KindFile, Name: "x", Distribution: "debian-12"}
			c := fromItem(item)
			inv.items, inv.components[c.ref] = []string{c.ref}, c
			inv.fillItem(c, item, found)
			if _, err := write(inv); err != nil {
				t.Error(err)
			}
		}
	})
}
