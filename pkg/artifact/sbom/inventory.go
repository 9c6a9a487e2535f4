package sbom

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	full       bool
}

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

// fact is something about a component that the formats have no field for.
type fact struct{ name, value string }

func (c *component) add(name, value string) {
	if value != "" {
		c.facts = append(c.facts, fact{name, value})
	}
}

// maxEdges is how often something may be in something else, in one document.
const maxEdges = 300_000

// take makes the inventory of a manifest.
func take(m *artifact.Manifest, found *findings) *inventory {
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
		if item.Kind == artifact.KindImage {
			inv.fill(c, imageContents(item, found, c)...)
		} else {
			inv.fillItem(c, item, found.blobs[itemKey(item)])
		}
	}
	return inv
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
		sort: sortFile, name: text(i.Name), version: text(i.Version), sha256: i.SHA256,
		download: address(i.Source), licence: text(i.Licence), contains: map[string]bool{},
	}
	c.add("kind", string(i.Kind))
	c.add("architecture", text(i.Architecture))
	c.add("distribution", text(i.Distribution))
	c.add("file", text(i.File))
	if c.download == "" {
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

// imageContents lists the contents of the images of an item, layers laid over each other.
func imageContents(i artifact.Item, found *findings, c *component) []*contents {
	for _, problem := range found.problems[i.Blob] {
		c.add("problem", problem)
		c.open = true
	}
	var all []*contents
	for _, image := range found.images[i.Blob] {
		whole := newContents()
		whole.Read = len(image.layers) == 0
		for _, layer := range image.layers {
			if next := found.blobs[layer]; next != nil {
				whole.layer(prefixed(next, layer))
			}
		}
		all = append(all, whole)
	}
	return all
}

// prefixed names the layer in the problems of its contents.
func prefixed(c *contents, layer blobKey) *contents {
	if len(c.Problems) == 0 {
		return c
	}
	named := *c
	named.Problems = nil
	for _, p := range c.Problems {
		named.Problems = append(named.Problems, "layer "+layer.digest+" "+p)
	}
	return &named
}

// fillItem adds what is in the blob of an item. If that is a program or a package, the item is the same.
func (inv *inventory) fillItem(c *component, i artifact.Item, found *contents) {
	if found == nil {
		c.open = true
		return
	}
	rest := *found
	if p, ok := found.Programs[""]; ok {
		c.sort = sortProgram
		inv.describe(c, p)
		rest.Programs = maps.Clone(found.Programs)
		delete(rest.Programs, "")
	}
	if packs := found.Databases["control"]; len(packs) == 1 {
		p := packs[0]
		c.sort, c.purl = sortPackage, packPURL(p, itemRelease(i))
		c.add("package", p.Name)
		c.add("package-version", p.Version)
		c.add("package-architecture", p.Architecture)
		c.add("source-package", p.Source)
		c.open = true // the files of the package are not read
		rest.Databases = nil
	}
	inv.fill(c, &rest)
}

// itemRelease reads a distribution as the manifest names it: debian-12.
func itemRelease(i artifact.Item) osRelease {
	id, version, _ := strings.Cut(i.Distribution, "-")
	return osRelease{ID: text(id), Version: text(version)}
}

// fill adds what is in an item.
func (inv *inventory) fill(c *component, all ...*contents) {
	for _, found := range all {
		c.open = c.open || !found.Read || len(found.Problems) > 0
		for _, p := range found.Problems {
			c.add("problem", p)
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
	}
	slices.SortStableFunc(c.facts, func(a, b fact) int { return cmp.Compare(a.name, b.name) })
	c.facts = slices.Compact(c.facts)
	if inv.full {
		c.open = true
		c.add("problem", fmt.Sprintf("the document has room for %d entries: not all that is in here is listed", maxEdges))
	}
}

// put adds a component that is in another one, and returns it.
func (inv *inventory) put(in, c *component) *component {
	known, ok := inv.components[c.ref]
	if !ok {
		known = c
	}
	switch {
	case in.contains[c.ref]:
		return known
	case inv.edges == maxEdges:
		inv.full = true
		return known
	}
	inv.components[c.ref] = known
	in.contains[c.ref] = true
	inv.edges++
	return known
}

// program adds a program that is in an item.
func (inv *inventory) program(in *component, name string, p program) {
	c := &component{sort: sortProgram, name: cmp.Or(p.Path, p.Main.Path, path.Base(name)), version: p.Main.Version,
		contains: map[string]bool{}}
	c.add("path", name)
	// Two programs are the same if everything that is known of them is.
	known, _ := json.Marshal(p) // has no fields that cannot be encoded
	c.ref = ref("Program", name, string(known))
	if inv.put(in, c) == c {
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
		c.add("problem", "its build information has no modules")
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
