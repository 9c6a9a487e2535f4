package foreign

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// problem reads a source that must be rejected, and returns why. Nothing may be left of it.
func problem(t *testing.T, source string) string {
	t.Helper()
	cache := filepath.Join(t.TempDir(), "cache")
	i, err := Read(t.Context(), []string{source}, Options{Cache: cache, Catalog: knownCatalog{}, AllowUnverified: true})
	if err == nil {
		_ = i.Close()
		t.Fatal("it was accepted")
	}
	if left, _ := os.ReadDir(cache); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return err.Error()
}

func TestHostileArchives(t *testing.T) {
	huge := entry{tar.Header{Name: "huge", Typeflag: tar.TypeReg, Size: 1 << 40}, nil}
	for name, c := range map[string]struct {
		want    string
		entries []entry
	}{
		"absolute":        {`"/etc/passwd" is an absolute name`, []entry{regular("/etc/passwd", "x")}},
		"upwards":         {`"a/../../b" leads out`, []entry{regular("a/../../b", "x")}},
		"upwards inside":  {`"a/../b" leads out`, []entry{regular("a/../b", "x")}},
		"upwards folder":  {`"../" leads out`, []entry{directory("../")}},
		"line break":      {`"a\nb" has a character`, []entry{regular("a\nb", "x")}},
		"backslash":       {`has a character`, []entry{regular(`a\b`, "x")}},
		"second entry":    {`second entry "a/b"`, []entry{regular("a/b", "x"), regular("./a/b", "y")}},
		"two cases":       {`"Helm" and "helm" differ in case`, []entry{regular("Helm", "x"), regular("helm", "x")}},
		"two case folder": {`"A" and "a" differ in case`, []entry{directory("A/"), regular("a/b", "x")}},
		"file and folder": {`"a" is both`, []entry{regular("a", "x"), regular("a/b", "x")}},
		"symbolic link":   {`"a" is a link to "/etc/passwd"`, []entry{symlink("a", "/etc/passwd")}},
		"link and file":   {`"a" is a link to "b"`, []entry{symlink("a", "b"), regular("a/x", "x")}},
		"link in layers":  {`"x/layer.tar" is a link to "../../b"`, []entry{symlink("x/layer.tar", "../../b")}},
		"link elsewhere":  {`"x/layer.tar" is a link to "y"`, []entry{symlink("x/layer.tar", "../y"), regular("y", "x")}},
		"other link of docker": {`"x/other.tar" is a link to "../y"`, []entry{symlink("x/other.tar", "../y"),
			regular("manifest.json", `[{"Config":"x.json","RepoTags":["a:1"],"Layers":[]}]`)}},
		"hard link": {`"b" is a link to "a"`, []entry{regular("a", "x"),
			{tar.Header{Name: "b", Linkname: "a", Typeflag: tar.TypeLink}, nil}}},
		"nothing":     {"neither a file nor an image", []entry{directory("a/")}},
		"blobs alone": {"neither a file nor an image", []entry{regular("images/blobs/sha256:"+sumOf([]byte("x")), "x")}},
		"device": {`"sda" is neither a file nor a folder`, []entry{
			{tar.Header{Name: "sda", Typeflag: tar.TypeBlock, Devmajor: 8}, nil}}},
		"pipe": {`"p" is neither a file nor a folder`, []entry{{tar.Header{Name: "p", Typeflag: tar.TypeFifo}, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{"a.tgz": zipped(t, pack(t, c.entries...))}
			if got := problem(t, write(t, t.TempDir(), files, "a.tgz")[0]); !strings.Contains(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("more than the disk", func(t *testing.T) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&huge.Header); err != nil {
			t.Fatal(err)
		}
		got := problem(t, write(t, t.TempDir(), map[string][]byte{"a.tar": b.Bytes()}, "a.tar")[0])
		if !strings.Contains(got, `"huge" has 1099511627776 bytes`) {
			t.Error(got)
		}
	})
}

// TestBomb unpacks zeros that a small archive grows to.
func TestBomb(t *testing.T) {
	p := filepath.Join(t.TempDir(), "bomb.tgz")
	f, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	const size = 40 << 20
	for n := range 2 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprint("zeros", n), Typeflag: tar.TypeReg, Size: size}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if got := problem(t, p); !strings.Contains(got, `"zeros1" has 41943040 bytes`) {
		t.Error(got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestTooManyEntries(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		archive := tar.NewWriter(w)
		for n := 0; ; n++ {
			if archive.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d/", n), Typeflag: tar.TypeDir}) != nil {
				return
			}
		}
	}()
	defer func() { _ = r.Close() }()
	i := &Import{dir: t.TempDir()}
	_, err := i.unpack(t.Context(), bufio.NewReader(r), newTree(1000), 1<<30)
	if err == nil || !strings.Contains(err.Error(), `"1000" is one file or folder too many`) {
		t.Error(err)
	}
}

func TestNamesAreBounded(t *testing.T) {
	tree := newTree(maxEntries)
	long := strings.Repeat("n", maxName-8)
	var err error
	for n := 0; err == nil; n++ {
		_, err = tree.admit(fmt.Sprintf("%08d%s", n, long), true)
	}
	if !strings.Contains(err.Error(), "are longer than 67108864 bytes") {
		t.Error(err)
	}
	if _, err := newTree(1).admit(strings.Repeat("n", maxName+1), true); err == nil {
		t.Error("a long name was accepted")
	}
}

// TestCutAndChanged cuts each kind of archive at many places, and changes bytes. A part of an archive that is not a
// whole one must never be accepted.
func TestCutAndChanged(t *testing.T) {
	for name, data := range formats(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for cut := 600; cut < len(data)-1024; cut += max(1, len(data)/40) {
				got := problem(t, write(t, dir, map[string][]byte{name: data[:cut]}, name)[0])
				if !strings.Contains(got, "cut off") {
					t.Errorf("cut at %d: %s", cut, got)
				}
			}
			longer := append(bytes.Clone(data), strings.Repeat("more", 200)...)
			got := problem(t, write(t, dir, map[string][]byte{name: longer}, name)[0])
			if !strings.Contains(got, "data follows") && !strings.Contains(got, "gzip: invalid header") {
				t.Errorf("with more data: %s", got)
			}
		})
	}
}

// TestDamagedImages changes one byte of each kind of blob.
func TestDamagedImages(t *testing.T) {
	p := newPicture(t, "amd64", "node", false)
	for name, data := range formats(t) {
		if plain, ok := unzipped(data); ok {
			data = plain
		}
		for part, content := range map[string][]byte{"config": []byte(`"rootfs"`), "name in layer": p.layer[:100],
			"manifest": []byte(`"config":{`)} {
			if at := bytes.Index(data, content); at >= 0 {
				changed := bytes.Clone(data)
				changed[at+1] ^= 1
				got := problem(t, write(t, t.TempDir(), map[string][]byte{"a.tar": changed}, "a.tar")[0])
				if !strings.Contains(got, "damaged") && !strings.Contains(got, "missing") {
					t.Errorf("%s: %s: %s", name, part, got)
				}
			}
		}
	}
}

func TestIncompleteImages(t *testing.T) {
	p := newPicture(t, "amd64", "node", false)
	without := func(blob string) []byte {
		blobs := map[string][]byte{}
		for digest, data := range p.blobs {
			if digest != blob {
				blobs[digest] = data
			}
		}
		d := p.manifest
		d.Annotations = map[string]string{refName: "quay.io/app/web:v2"}
		return pack(t, layoutEntries(t, "", indexOf(d), blobs)...)
	}
	for digest := range p.blobs {
		got := problem(t, write(t, t.TempDir(), map[string][]byte{"a.tar": without(digest)}, "a.tar")[0])
		if !strings.Contains(got, "image quay.io/app/web:v2: ") || !strings.Contains(got, digest+" is missing") {
			t.Errorf("%s: %s", digest, got)
		}
	}
	wrong := p.manifest
	wrong.Annotations = map[string]string{refName: "latest"}
	got := problem(t, write(t, t.TempDir(), map[string][]byte{
		"a.tar": pack(t, layoutEntries(t, "", indexOf(wrong), p.blobs)...)}, "a.tar")[0])
	if !strings.Contains(got, `"latest" is not the name of an image with its tag`) {
		t.Error(got)
	}
}

// TestWrongPlatform has an index that names an image for another platform than its own.
func TestWrongPlatform(t *testing.T) {
	p := newPicture(t, "arm64", "node", false)
	d, text := newIndex(t, "application/vnd.oci.image.index.v1+json", map[string]picture{"amd64": p})
	p.blobs[sumOf(text)] = text
	d.Annotations = map[string]string{refName: "quay.io/app/web:v2"}
	layout := pack(t, layoutEntries(t, "", indexOf(d), p.blobs)...)
	got := problem(t, write(t, t.TempDir(), map[string][]byte{"a.tar": layout}, "a.tar")[0])
	if !strings.Contains(got, "the image for linux/amd64 is one for linux/arm64") {
		t.Error(got)
	}
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{"kubeadm": []byte("kubeadm v1.34.4 amd64"), "notes/readme.txt": []byte("notes")}
	write(t, dir, files, "kubeadm", "notes/readme.txt")
	want := []string{"file kubeadm v1.34.4 amd64 kubeadm/v1.34.4/amd64/kubeadm",
		"extra readme.txt imported/notes/readme.txt unverified"}
	if got := imported(t, []string{dir}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q", got)
	}
	cache := t.TempDir()
	_, err := Read(t.Context(), []string{dir}, Options{Cache: cache, Catalog: knownCatalog{}})
	if err == nil || !strings.Contains(err.Error(), "- notes/readme.txt in "+dir) ||
		!strings.Contains(err.Error(), "--allow-unverified") || strings.Contains(err.Error(), "kubeadm") {
		t.Error(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got := problem(t, dir); !strings.Contains(got, `"link" is a link`) {
		t.Error(got)
	}
}

func TestSourcesTogether(t *testing.T) {
	files := formats(t)
	files["other"] = []byte("kubeadm v1.34.4 amd64")
	dir := t.TempDir()
	got := imported(t, write(t, dir, files, "kubekey3.tar.gz", "oci.tar", "other", "docker.tar"))
	if len(got) != 6 {
		t.Errorf("got %q", got)
	}
	web := newPicture(t, "amd64", "another", true)
	d := web.manifest
	d.Annotations = map[string]string{refName: "quay.io/app/web:v2"}
	files["web.tar"] = pack(t, layoutEntries(t, "", indexOf(d), web.blobs)...)
	_, err := Read(t.Context(), write(t, dir, files, "docker.tar", "web.tar"),
		Options{Cache: t.TempDir(), Catalog: knownCatalog{}, AllowUnverified: true})
	if err == nil || !strings.Contains(err.Error(), "image quay.io/app/web:v2: ") {
		t.Error(err)
	}
}

func TestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sources := write(t, t.TempDir(), formats(t), "kubekey4.tgz")
	_, err := Read(ctx, sources, Options{Cache: t.TempDir(), Catalog: knownCatalog{}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// treeOf is the tree of files that exist by name only.
func treeOf(t *testing.T, files int, name func(n int) string) *tree {
	t.Helper()
	out := newTree(maxEntries)
	for n := range files {
		name, err := out.admit(name(n), true)
		if err != nil {
			t.Fatal(err)
		}
		out.files[name] = file{sum: sha256.Sum256([]byte(name))}
	}
	return out
}

func newImport(allow bool) *Import {
	return &Import{Options: Options{Catalog: knownCatalog{}, AllowUnverified: allow},
		byName: map[string][sha256.Size]byte{}, images: map[string][]image{}}
}

// TestTooManyFiles has more files than the manifest of an offline file can have.
func TestTooManyFiles(t *testing.T) {
	source := treeOf(t, maxFiles+1, strconv.Itoa)
	err := newImport(true).sort(t.Context(), "a.tar", source)
	if err == nil || !strings.Contains(err.Error(), "with 9999 there are more than 20000 files") {
		t.Error(err)
	}
	delete(source.files, "0")
	if err := newImport(true).sort(t.Context(), "a.tar", source); err != nil {
		t.Error(err)
	}
}

// TestErrorsAreBounded has very many problems of one kind.
func TestErrorsAreBounded(t *testing.T) {
	damaged := treeOf(t, maxShown+7, func(n int) string { return fmt.Sprintf("blobs/sha256/%d", n) })
	unknown := newImport(false)
	if err := unknown.sort(t.Context(), "a.tar", treeOf(t, maxShown+7, strconv.Itoa)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"is damaged": damaged.damaged(), "in a.tar": unknown.unverified()} {
		if n := strings.Count(fmt.Sprint(err), name); n != maxShown || !strings.Contains(err.Error(), "and 7 more") {
			t.Errorf("%d times %q: %v", n, name, err)
		}
	}
}

// TestObjectsAreBounded has documents that need much more memory than their size.
func TestObjectsAreBounded(t *testing.T) {
	index := `{"schemaVersion":2,"manifests":[` + strings.Repeat("{},", maxObjects) + `{}]}`
	for want, text := range map[string]string{"it has 50002 objects: at most 50000 are read": index,
		"it has 4194305 bytes: at most 4194304 are read": strings.Repeat(" ", maxJSON+1)} {
		layout := pack(t, regular("oci-layout", "{}"), regular("index.json", text))
		got := problem(t, write(t, t.TempDir(), map[string][]byte{"a.tar": layout}, "a.tar")[0])
		if !strings.Contains(got, "index.json: "+want) {
			t.Error(got)
		}
	}
}

// TestStopsInImages stops when what was unpacked is looked at.
func TestStopsInImages(t *testing.T) {
	i := newImport(true)
	i.dir = t.TempDir()
	source, err := i.unpack(t.Context(), bufio.NewReader(bytes.NewReader(ociArchive(t))), newTree(maxEntries), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := i.sort(ctx, "oci.tar", source); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
