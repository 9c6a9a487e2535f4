package artifact

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Format is the version of the file format that this package writes, and the newest that it reads.
const Format = 1

// Names of documents: the SBOMs of the file.
const (
	SPDXName      = "kk/sbom.spdx.json"
	CycloneDXName = "kk/sbom.cdx.json"
)

// MaxManifest is the size of the largest manifest that is read, in bytes.
const MaxManifest = 64 << 20

// Further limits of what is read.
const (
	maxDocument = 64 << 20 // of each one
	maxEntries  = 1_000_000
)

// Manifest lists everything in a file.
type Manifest struct {
	Format    int            `json:"format"`
	Covers    Covers         `json:"covers"`
	Catalog   []Document     `json:"catalog,omitempty"`
	Documents []DocumentInfo `json:"documents,omitempty"` // in the order of the file
	Items     []Item         `json:"items"`
	Blobs     []Blob         `json:"blobs"` // in the order of the file
}

// DocumentInfo describes a text about the file that stands before the blobs: an SBOM.
type DocumentInfo struct {
	Name   string `json:"name"` // of the entry: kk/sbom.spdx.json
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Covers is what a file was made for.
type Covers struct {
	Kubernetes    []string `json:"kubernetes,omitempty"`
	Architectures []string `json:"architectures,omitempty"`
	Distributions []string `json:"distributions,omitempty"`
	Groups        []string `json:"groups,omitempty"` // of images, as the catalog names them
}

// Document is a file of the catalog, with its text.
type Document struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Kind is what an item is.
type Kind string

// The kinds of items.
const (
	KindFile    Kind = "file"
	KindChart   Kind = "chart"
	KindImage   Kind = "image"
	KindPackage Kind = "package"
	KindExtra   Kind = "extra"
)

var kinds = []Kind{KindFile, KindChart, KindImage, KindPackage, KindExtra}

// Kinds lists the kinds of items.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// Item is a file, a chart, an image, or a repository of packages.
type Item struct {
	Kind         Kind            `json:"kind"`
	Name         string          `json:"name"` // of a component or chart; the whole reference of an image
	Version      string          `json:"version,omitempty"`
	Architecture string          `json:"architecture,omitempty"`
	Distribution string          `json:"distribution,omitempty"`
	File         string          `json:"file,omitempty"`   // the catalog's name for the file, a relative path
	Source       string          `json:"source,omitempty"` // where it was fetched
	Group        string          `json:"group,omitempty"`  // of an image: its group in the catalog
	Licence      string          `json:"licence,omitempty"`
	Size         int64           `json:"size"`   // of the content; of an image, of all its blobs
	SHA256       string          `json:"sha256"` // of the content; of an image, its digest
	Encoding     Encoding        `json:"encoding,omitempty"`
	Blob         string          `json:"blob"`                 // digest of the blob that holds it
	MediaType    types.MediaType `json:"media_type,omitempty"` // of an image
	Platforms    []string        `json:"platforms,omitempty"`  // of an image: those that the file has
	Blobs        []string        `json:"blobs,omitempty"`      // of an image: all its blobs, Blob among them
	Unverified   bool            `json:"unverified,omitempty"` // no digest was known when it was imported
}

// Encoding is how a blob holds its content.
type Encoding string

// The encodings. Plain is the content itself.
const (
	Plain Encoding = ""
	Zstd  Encoding = "zstd"
)

// String names an item in messages.
func (i Item) String() string {
	parts := []string{string(i.Kind), i.Name}
	if i.Version != "" && i.Kind != KindImage {
		parts = append(parts, i.Version)
	}
	if i.Architecture != "" {
		parts = append(parts, i.Architecture)
	}
	return strings.Join(parts, " ")
}

// all lists the blobs of the item.
func (i Item) all() []string {
	if i.Kind == KindImage {
		return i.Blobs
	}
	return []string{i.Blob}
}

// Blob is a blob of the file.
type Blob struct {
	Digest string `json:"digest"` // sha256:HEX
	Size   int64  `json:"size"`
}

// sort brings the manifest into its one order.
func (m *Manifest) sort() {
	slices.SortFunc(m.Items, compareItems)
	slices.SortFunc(m.Blobs, func(a, b Blob) int { return cmp.Compare(a.Digest, b.Digest) })
	slices.SortFunc(m.Documents, func(a, b DocumentInfo) int { return cmp.Compare(a.Name, b.Name) })
	for _, list := range m.Covers.lists() {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

func (c *Covers) lists() []*[]string {
	return []*[]string{&c.Kubernetes, &c.Architectures, &c.Distributions, &c.Groups}
}

func compareItems(a, b Item) int {
	return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Version, b.Version), cmp.Compare(a.Architecture, b.Architecture),
		cmp.Compare(a.Distribution, b.Distribution), cmp.Compare(a.File, b.File))
}

// Shared returns, for each item, the size of those of its blobs that other items use as well.
func (m *Manifest) Shared() []int64 {
	users := make(map[string]int, len(m.Blobs))
	for _, i := range m.Items {
		for _, d := range i.all() {
			users[d]++
		}
	}
	shared := make([]int64, len(m.Items))
	for n, i := range m.Items {
		for _, d := range i.all() {
			if b, ok := m.find(d); ok && users[d] > 1 {
				shared[n] += m.Blobs[b].Size
			}
		}
	}
	return shared
}

// Digest returns the digest of the manifest's bytes, sha256:HEX. A delta names its base by it.
func (m *Manifest) Digest() (string, error) {
	text, err := m.encode()
	if err != nil {
		return "", err
	}
	return digestOf(text), nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// encode returns the bytes of the manifest.
func (m *Manifest) encode() ([]byte, error) { return encodeJSON(m) }

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	err := writeJSON(&b, v)
	return b.Bytes(), err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// ReadManifest reads the manifest of an offline file, or the text of one that lies alone.
func ReadManifest(path string) (*Manifest, error) {
	f, err := OpenOlder(path)
	if err != nil {
		return nil, err
	}
	return f.Manifest, f.Close()
}

// OpenOlder opens the file that a delta is for. That can be the text of its manifest, which has no blobs.
func OpenOlder(path string) (*File, error) {
	f, err := Open(path)
	if err == nil {
		return f, nil
	}
	info, statErr := os.Stat(path)
	if statErr != nil || !info.Mode().IsRegular() || info.Size() > MaxManifest {
		return nil, err
	}
	text, readErr := os.ReadFile(path)
	if readErr != nil || !bytes.HasPrefix(text, []byte("{")) {
		return nil, err
	}
	m, err := ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{Path: path, Manifest: m}, nil
}

// ManifestAlone reports whether OpenOlder found a manifest without the file.
func (f *File) ManifestAlone() bool { return f.data == nil }

// ParseManifest reads the text of a manifest, as File.ManifestBytes returns it. All contradictions in it
// are reported.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > MaxManifest {
		return nil, fmt.Errorf("the manifest has %d bytes: at most %d are read", len(text), MaxManifest)
	}
	m := &Manifest{}
	if err := decodeJSON(text, m); err != nil {
		return nil, cmp.Or(checkFormat(text), fmt.Errorf("read the manifest: %w", err))
	}
	if m.Format != Format {
		return nil, checkFormat(text)
	}
	return m, m.check()
}

// checkFormat reports the format of a manifest that this kk does not read.
func checkFormat(text []byte) error {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("the manifest is not valid JSON: %w", err)
	}
	if head.Format != Format {
		return fmt.Errorf("the file has format %d, and this kk reads format %d: use the kk that made the file, or a "+
			"newer one", head.Format, Format)
	}
	return nil
}

// decodeJSON reads JSON in the one form that encodeJSON writes, so that a text has one meaning only:
// without keys that are unknown, repeated or in another case.
func decodeJSON[T any](text []byte, into *T) error {
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	same := &comparison{text}
	if err := writeJSON(same, into); !errors.Is(err, errDiffers) && (err != nil || len(same.rest) == 0) {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(new(T)); err != nil { // names the key
		return err
	}
	return errors.New("it is not in the form that kk writes: something else has changed it")
}

// comparison compares what is written with a text, without a second copy of it.
type comparison struct{ rest []byte }

var errDiffers = errors.New("the texts differ")

func (c *comparison) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(c.rest, p) {
		return 0, errDiffers
	}
	c.rest = c.rest[len(p):]
	return len(p), nil
}

// checker collects the contradictions of a manifest.
type checker struct {
	problems []error
	sizes    map[string]int64  // of blobs
	names    map[string]string // of files and documents, in lower case → as written
}

func (c *checker) wrong(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// name rejects a name that is used twice, or that differs from another in case only: some file systems
// do not distinguish them.
func (c *checker) name(name string) {
	switch was, used := c.names[strings.ToLower(name)]; {
	case !used:
		c.names[strings.ToLower(name)] = name
	case was == name:
		c.wrong("the name %q is used twice", name)
	default:
		c.wrong("the names %q and %q differ in upper and lower case only", was, name)
	}
}

// check reports everything in the manifest that contradicts itself.
func (m *Manifest) check() error {
	if n := len(m.Blobs) + len(m.Documents); n > maxEntries {
		return fmt.Errorf("the manifest lists %d entries: at most %d are read", n, maxEntries)
	}
	c := &checker{sizes: make(map[string]int64, len(m.Blobs)), names: make(map[string]string, len(m.Items))}
	previous := ""
	for _, b := range m.Blobs {
		switch {
		case !isDigest(b.Digest):
			c.wrong("%q is not a digest", b.Digest)
		case b.Digest <= previous:
			c.wrong("blob %s is listed twice or out of order", b.Digest)
		case b.Size < 0 || b.Size > maxBlob:
			c.wrong("blob %s has the size %d: at most %d bytes fit into the file", b.Digest, b.Size, int64(maxBlob))
		}
		previous = b.Digest
		c.sizes[b.Digest] = b.Size
	}
	c.documents(m.Documents)
	c.items(m)
	return errors.Join(c.problems...)
}

func (c *checker) documents(all []DocumentInfo) {
	previous := ""
	for _, d := range all {
		switch {
		case !isDocument(d.Name):
			c.wrong("%q is not a name of a document", d.Name)
		case d.Name < previous:
			c.wrong("the document %s is out of order", d.Name)
		case d.Size < 0 || d.Size > maxDocument:
			c.wrong("%s has %d bytes: at most %d are read", d.Name, d.Size, maxDocument)
		case !isDigest("sha256:" + d.SHA256):
			c.wrong("%s: %q is not a sha256", d.Name, d.SHA256)
		}
		previous = d.Name
		c.name(d.Name)
	}
}

func (c *checker) items(m *Manifest) {
	used := make(map[string]bool, len(m.Blobs))
	for n, i := range m.Items {
		switch {
		case n == 0:
		case m.Items[n-1].key() == i.key():
			c.wrong("%s is listed twice", i)
		case compareItems(m.Items[n-1], i) > 0:
			c.wrong("%s is out of order", i)
		}
		if err := i.check(c.sizes); err != nil {
			c.wrong("%s: %w", i, err)
		}
		if i.File != "" {
			c.name(i.File)
		}
		for _, d := range i.all() {
			used[d] = true
		}
	}
	for _, b := range m.Blobs {
		if !used[b.Digest] {
			c.wrong("blob %s belongs to no item", b.Digest)
		}
	}
}

// isDocument reports whether an entry before the blobs can have this name.
func isDocument(name string) bool {
	rest, ok := strings.CutPrefix(name, "kk/")
	return ok && isLocal(rest) && !strings.Contains(rest, "/") && len(name) <= 100 &&
		name != manifestName && name != deltaName &&
		!strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// key is what no two items share.
func (i Item) key() string {
	return strings.Join([]string{string(i.Kind), i.Name, i.Version, i.Architecture, i.Distribution, i.File}, "\x00")
}

func (i Item) check(sizes map[string]int64) error {
	switch {
	case !slices.Contains(kinds, i.Kind):
		return fmt.Errorf("unknown kind %q", i.Kind)
	case i.Name == "":
		return errors.New("it has no name")
	case i.Encoding != Plain && i.Encoding != Zstd:
		return fmt.Errorf("unknown encoding %q", i.Encoding)
	case i.Size < 0:
		return fmt.Errorf("it has the size %d", i.Size)
	case !isDigest("sha256:" + i.SHA256):
		return fmt.Errorf("%q is not a sha256", i.SHA256)
	case i.File != "" && !isLocal(i.File):
		return fmt.Errorf("%q is not a relative path below the directory that it is extracted to", i.File)
	}
	for _, d := range i.all() {
		if _, ok := sizes[d]; !ok {
			return fmt.Errorf("its blob %s is not in the list of blobs", d)
		}
	}
	if i.Kind == KindImage {
		return i.checkImage(sizes)
	}
	if i.Encoding == Plain && (i.Blob != "sha256:"+i.SHA256 || sizes[i.Blob] != i.Size) {
		return fmt.Errorf("its blob %s has another digest or size than its content", i.Blob)
	}
	return nil
}

func (i Item) checkImage(sizes map[string]int64) error {
	switch {
	case i.Blob != "sha256:"+i.SHA256 || i.Encoding != Plain:
		return errors.New("its digest is not the one of its manifest")
	case !slices.Contains(i.Blobs, i.Blob):
		return errors.New("its manifest is not among its blobs")
	case i.IsAttached() && len(i.Platforms) > 0:
		return errors.New("it is attached to an image, and has platforms like an image")
	case !i.MediaType.IsImage() && !i.MediaType.IsIndex():
		return fmt.Errorf("%q is no media type of an image", i.MediaType)
	}
	var size int64
	for n, d := range i.Blobs {
		if n > 0 && d <= i.Blobs[n-1] {
			return fmt.Errorf("its blob %s is listed twice or out of order", d)
		}
		size += sizes[d]
	}
	if size != i.Size {
		return fmt.Errorf("it has the size %d, and its blobs have %d", i.Size, size)
	}
	return nil
}

// isLocal reports whether a slash-separated path stays below where it starts, in its shortest form.
func isLocal(name string) bool {
	return name == path.Clean(name) && !path.IsAbs(name) && name != "." && name != ".." &&
		!strings.HasPrefix(name, "../") && !strings.ContainsAny(name, "\\\x00")
}

func isDigest(text string) bool {
	digits, ok := strings.CutPrefix(text, "sha256:")
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 64 && strings.ToLower(digits) == digits
}

// Names of annotations that programs read the name of an image from.
const (
	refName        = "org.opencontainers.image.ref.name" // skopeo, umoci, podman
	containerdName = "io.containerd.image.name"          // ctr, nerdctl
)

// index is the OCI layout's index.json, which follows from the manifest.
func (m *Manifest) index() ([]byte, error) {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
	sizes := make(map[string]int64, len(m.Blobs))
	for _, b := range m.Blobs {
		sizes[b.Digest] = b.Size
	}
	for _, i := range m.Items {
		if i.Kind != KindImage {
			continue
		}
		d := v1.Descriptor{MediaType: i.MediaType, Size: sizes[i.Blob], Digest: v1.Hash{Algorithm: "sha256", Hex: i.SHA256},
			Annotations: map[string]string{refName: i.Name, containerdName: i.Name}}
		if i.IsAttached() {
			delete(d.Annotations, containerdName) // containerd would try to unpack it
		}
		index.Manifests = append(index.Manifests, d)
	}
	return encodeJSON(index)
}
