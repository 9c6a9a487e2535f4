package sbom

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kubekey/pkg/artifact"
)

// inventory is what both formats are written from.
type inventory struct {
	id         uuid.UUID // follows from the items
	name       string
	items      []string // refs of their components, in the order of the manifest
	components map[string]*component
	edges      int
	texts      int // bytes of what is not an item
	full       bool
}

// scope is what the document says about itself.
const scope = "Listed are the items of the offline file; in them, modules of Go programs, and packages in " +
	"databases of dpkg and apk. Other contents are not listed."

// sort of a component.
type sort string

const (
	sortFile    sort = "file"
	sortImage   sort = "image"
	sortPackage sort = "package" // a package, or a repository of packages
	sortProgram sort = "program"
	sortLibrary sort = "library"
)

// component is an item, or something in one. Texts are safe to write; empty ones are not known.
type component struct {
	ref      string // its name in the document
	sort     sort
	name     string
	version  string
	sha256   string
	download string // URL
	licence  string
	purl     string
	facts    []fact
	contains map[string]bool // refs
	// open means that it may contain more than what is listed.
	open bool
}

// size is the number of bytes of its texts.
func (c *component) size() int {
	n := len(c.name) + len(c.version) + len(c.licence) + len(c.purl)
	for _, f := range c.facts {
		n += len(f.name) + len(f.value)
	}
	return n
}

// fact is something about a component that the formats have no field for.
type fact struct{ name, value string }

func (c *component) add(name, value string) {
	if value != "" {
		c.facts = append(c.facts, fact{name, value})
	}
}

// Limits of a document, beyond its items.
const (
	maxEdges = 200_000  // how often something is in something else
	maxTexts = 32 << 20 // bytes of names, versions and problems
)

// take makes the inventory of a manifest.
func take(ctx context.Context, m *artifact.Manifest, s *survey) (*inventory, error) {
	inv := &inventory{id: identify(m), items: []string{}, components: map[string]*component{}}
	inv.name = "kk-offline-file"
	if len(m.Covers.Kubernetes) > 0 {
		inv.name += "-" + text(strings.Join(m.Covers.Kubernetes, "-"))
	}
	for _, item := range m.Items {
		c := fromItem(item)
		if inv.components[c.ref] != nil {
			continue // a manifest that was checked has no two such items
		}
		inv.items = append(inv.items, c.ref)
		inv.components[c.ref] = c
		if err := inv.item(ctx, c, item, s); err != nil {
			return nil, err
		}
	}
	return inv, nil
}

// item adds what is in an item.
func (inv *inventory) item(ctx context.Context, c *component, i artifact.Item, s *survey) error {
	if i.Kind != artifact.KindImage {
		found, err := s.contents(ctx, itemKey(i))
		if err == nil {
			inv.fillItem(c, i, found)
		}
		return err
	}
	for _, problem := range s.problems[i.Blob] {
		inv.problem(c, problem)
	}
	c.open = c.open || len(s.images[i.Blob]) == 0
	for _, image := range s.images[i.Blob] {
		whole := newContents()
		whole.Read = len(image.layers) == 0
		for _, layer := range image.layers {
			next, err := s.contents(ctx, layer)
			if err != nil {
				return err
			}
			for n := range next.Problems {
				next.Problems[n] = "layer " + layer.digest + " " + next.Problems[n]
			}
			whole.layer(next)
		}
		inv.fill(c, whole)
	}
	return nil
}

// identify derives the number of the document from the items.
func identify(m *artifact.Manifest) uuid.UUID {
	// Items have no fields that cannot be encoded.
	text, _ := json.Marshal(m.Items)
	return uuid.NewHash(sha256.New(), uuid.Nil, text, 8)
}

// ref makes a name in the document from what no two components share.
func ref(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

// fromItem makes the component of an item.
func fromItem(i artifact.Item) *component {
	c := &component{
		ref:  ref("Item", string(i.Kind), i.Name, i.Version, i.Architecture, i.Distribution, i.File),
		sort: sortFile, name: cmp.Or(text(i.Name), "unnamed"), version: text(i.Version), sha256: i.SHA256,
		download: address(i.Source), licence: text(i.Licence), contains: map[string]bool{},
	}
	c.add("kind", string(i.Kind))
	c.add("architecture", text(i.Architecture))
	c.add("distribution", text(i.Distribution))
	c.add("file", text(i.File))
	if c.download == "" && !strings.Contains(i.Source, "@") { // it can have a password
		c.add("source", text(i.Source))
	}
	switch i.Kind {
	case artifact.KindImage:
		c.sort, c.purl = sortImage, imagePURL(i)
		c.version = cmp.Or(c.version, imageTag(i.Name))
		for _, p := range i.Platforms {
			c.add("platform", text(p))
		}
	case artifact.KindPackage:
		c.sort = sortPackage
	}
	if i.Unverified {
		c.add("unverified", "no digest was known when it was imported")
	}
	return c
}

// fillItem adds what is in the blob of an item. If that is a program or a package, the item is the same.
func (inv *inventory) fillItem(c *component, i artifact.Item, found *contents) {
	rest := *found
	if p, ok := found.Programs[""]; ok {
		c.sort = sortProgram
		inv.describe(c, p)
		rest.Programs = maps.Clone(found.Programs)
		delete(rest.Programs, "")
	}
	if packs := found.Databases[controlFile]; len(packs) == 1 {
		p := packs[0]
		c.sort, c.purl = sortPackage, packPURL(p, itemRelease(i))
		c.add("package", p.Name)
		c.add("package-version", p.Version)
		c.add("package-architecture", p.Architecture)
		c.add("source-package", p.Source)
		c.open = true
		c.add("contents", "the files of the package are not read")
		rest.Databases = nil
	}
	if len(rest.Releases) == 0 {
		rest.Releases = map[string]osRelease{releaseFiles[0]: itemRelease(i)}
	}
	inv.fill(c, &rest)
}

// itemRelease reads a distribution as the manifest names it: debian-12.
func itemRelease(i artifact.Item) osRelease {
	id, version, _ := strings.Cut(i.Distribution, "-")
	return osRelease{ID: text(id), Version: text(version)}
}

// fill adds what is in an item.
func (inv *inventory) fill(c *component, found *contents) {
	if !found.Read {
		c.open = true
		c.add("contents", noAssertion)
	}
	for _, p := range found.Problems {
		inv.problem(c, p)
	}
	for _, name := range slices.Sorted(maps.Keys(found.Programs)) {
		inv.program(c, name, found.Programs[name])
	}
	release, _ := found.release()
	for _, name := range slices.Sorted(maps.Keys(found.Databases)) {
		for _, p := range found.Databases[name] {
			inv.put(c, fromPack(p, release))
		}
	}
	if inv.full {
		c.open = true
		c.add(factProblem, "the document is full: not everything in here is listed")
	}
	slices.SortStableFunc(c.facts, func(a, b fact) int { return cmp.Compare(a.name, b.name) })
	c.facts = slices.Compact(c.facts)
}

// factProblem is the name of what could not be read.
const factProblem = "problem"

// problem records that something in a component could not be read.
func (inv *inventory) problem(c *component, p string) {
	c.open = true
	if inv.room(len(p)) {
		c.add(factProblem, p)
	}
}

// room reports whether a text still fits into the document.
func (inv *inventory) room(size int) bool {
	if inv.full = inv.full || inv.texts+size > maxTexts; inv.full {
		return false
	}
	inv.texts += size
	return true
}

// put adds a component that is in another one. It reports whether it was not known before.
func (inv *inventory) put(in, c *component) bool {
	if in.contains[c.ref] {
		return false
	}
	known := inv.components[c.ref] != nil
	if inv.full = inv.full || inv.edges == maxEdges; inv.full || !known && !inv.room(c.size()) {
		return false
	}
	if !known {
		inv.components[c.ref] = c
	}
	in.contains[c.ref] = true
	inv.edges++
	return !known
}

// program adds a program that is in an item.
func (inv *inventory) program(in *component, name string, p program) {
	c := &component{sort: sortProgram, name: cmp.Or(p.Path, p.Main.Path, path.Base(name)), version: p.Main.Version,
		contains: map[string]bool{}}
	c.add("path", name)
	// Two programs are the same if everything that is known of them is.
	known, _ := json.Marshal(p) // has no fields that cannot be encoded
	c.ref = ref("Program", name, string(known))
	if inv.put(in, c) {
		inv.describe(c, p)
	}
}

// describe adds what a program was built from.
func (inv *inventory) describe(c *component, p program) {
	c.add("go-version", p.Go)
	c.add("go-package", p.Path)
	inv.put(c, fromModule(module{Path: "stdlib", Version: strings.TrimPrefix(p.Go, "go")}))
	if p.Main.Path != "" {
		inv.put(c, fromModule(p.Main))
	}
	for _, m := range p.Modules {
		inv.put(c, fromModule(m))
	}
	if p.Main.Path == "" && len(p.Modules) == 0 {
		c.open = true // built without modules, or with an old Go
		c.add(factProblem, "its build information has no modules")
	}
}

func fromModule(m module) *component {
	c := &component{ref: ref("Go", m.Path, m.Version, m.For), sort: sortLibrary, name: m.Path, version: m.Version,
		contains: map[string]bool{}}
	if m.Version != "" {
		c.purl = modulePURL(m)
	}
	c.add("replaces", m.For)
	return c
}

func fromPack(p pack, r osRelease) *component {
	c := &component{ref: ref("Package", p.Type, p.Name, p.Version, p.Architecture, r.ID, r.Version), sort: sortPackage,
		name: p.Name, version: p.Version, licence: p.Licence, purl: packPURL(p, r), contains: map[string]bool{}}
	c.add("architecture", p.Architecture)
	c.add("distribution", strings.Trim(r.ID+"-"+r.Version, "-"))
	c.add("source-package", p.Source)
	return c
}

// sorted lists all components: items in the order of the manifest, then the others by ref.
func (inv *inventory) sorted() []*component {
	var all []*component
	isItem := map[string]bool{}
	for _, r := range inv.items {
		isItem[r] = true
		all = append(all, inv.components[r])
	}
	for _, r := range slices.Sorted(maps.Keys(inv.components)) {
		if !isItem[r] {
			all = append(all, inv.components[r])
		}
	}
	return all
}

// inside lists the refs of what a component contains.
func (c *component) inside() []string { return slices.Sorted(maps.Keys(c.contains)) }
