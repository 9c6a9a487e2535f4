package sbom

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"kubekey/pkg/artifact"
)

// cyclonedxSchema compiles the schema that the library ships.
func cyclonedxSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "schema")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for url, file := range map[string]string{
		"http://cyclonedx.org/schema/bom-1.6.schema.json":  "bom-1.6.schema.json",
		"http://cyclonedx.org/schema/spdx.schema.json":     "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		addSchema(t, c, url, filepath.Join(dir, file))
	}
	return compiled(t, c, "http://cyclonedx.org/schema/bom-1.6.schema.json")
}

func addSchema(t *testing.T, c *jsonschema.Compiler, url, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(file, err)
	}
	if err := c.AddResource(url, v); err != nil {
		t.Fatal(file, err)
	}
}

func compiled(t *testing.T, c *jsonschema.Compiler, url string) *jsonschema.Schema {
	t.Helper()
	s, err := c.Compile(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spdxSchema compiles the schema of the specification.
func spdxSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	const url = "http://spdx.org/rdf/terms/2.3"
	c := jsonschema.NewCompiler()
	addSchema(t, c, url, "testdata/spdx-2.3.schema.json")
	return compiled(t, c, url)
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%#v", err)
	}
}

// checkSPDX checks a document against the schema, and that the library reads and writes it as it is.
func checkSPDX(t *testing.T, text []byte) *spdx.Document {
	t.Helper()
	validate(t, spdxSchema(t), text)
	var doc spdx.Document
	if err := spdxjson.ReadInto(bytes.NewReader(text), &doc); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := spdxjson.Write(&doc, &again, spdxjson.Indent(" "), spdxjson.EscapeHTML(false)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Bytes(), text) {
		t.Error("the library reads the document as another one")
	}
	known := map[common.ElementID]bool{"DOCUMENT": true}
	for _, p := range doc.Packages {
		if known[p.PackageSPDXIdentifier] {
			t.Errorf("%s is there twice", p.PackageSPDXIdentifier)
		}
		known[p.PackageSPDXIdentifier] = true
	}
	for _, r := range doc.Relationships {
		if !known[r.RefA.ElementRefID] || r.RefB.SpecialID == "" && !known[r.RefB.ElementRefID] {
			t.Errorf("a relationship of unknown packages: %+v", r)
		}
	}
	return &doc
}

// checkCycloneDX does the same for CycloneDX.
func checkCycloneDX(t *testing.T, text []byte) *cyclonedx.BOM {
	t.Helper()
	validate(t, cyclonedxSchema(t), text)
	bom := &cyclonedx.BOM{}
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cyclonedx.SpecVersion1_6 || bom.BOMFormat != cyclonedx.BOMFormat {
		t.Errorf("the document is %s %s", bom.BOMFormat, bom.SpecVersion)
	}
	var again bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&again, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Bytes(), text) {
		t.Error("the library reads the document as another one")
	}
	return bom
}

// tree lists what is in a document: the purl or name of each component, with that of what contains it.
func tree(inv map[string]string, contains map[string][]string) map[string][]string {
	out := map[string][]string{}
	for from, all := range contains {
		for _, to := range all {
			out[inv[from]] = append(out[inv[from]], inv[to])
		}
		slices.Sort(out[inv[from]])
	}
	return out
}

// want is what is in the file of all.
func wantTree() map[string][]string {
	libraries := []string{"example.com/Main", "../dep", "stdlib"}
	slices.Sort(libraries)
	return map[string][]string{
		"kubeadm": libraries, "runc": {"example.com/Main"}, "tool": {"example.com/Main"},
		"registry.example.com/group/debian:1": {"example.com/Main", "libc6", "tzdata"},
		"docker.io/library/alpine:3.20":       {"musl", "odd"},
		"example.com/Main":                    slices.Sorted(slices.Values(slices.Concat(libraries, libraries, libraries))),
	}
}

func sameTree(t *testing.T, got, want map[string][]string) {
	t.Helper()
	for name, inside := range want {
		if !slices.Equal(got[name], inside) {
			t.Errorf("%s contains %q, want %q", name, got[name], inside)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s contains %q, want nothing", name, got[name])
		}
	}
}

func TestSPDX(t *testing.T) {
	doc := checkSPDX(t, document(t, all(t), "", SPDX))
	names, purls, contains := map[string]string{}, map[string]string{}, map[string][]string{}
	var open []string
	for _, p := range doc.Packages {
		names[string(p.PackageSPDXIdentifier)] = p.PackageName
		for _, r := range p.PackageExternalReferences {
			purls[p.PackageName] = r.Locator
		}
	}
	described := 0
	for _, r := range doc.Relationships {
		switch {
		case r.Relationship == common.TypeRelationshipDescribe:
			described++
		case r.RefB.SpecialID == noAssertion:
			open = append(open, names[string(r.RefA.ElementRefID)])
		default:
			from := string(r.RefA.ElementRefID)
			contains[from] = append(contains[from], string(r.RefB.ElementRefID))
		}
	}
	sameTree(t, tree(names, contains), wantTree())
	if described != 8 {
		t.Errorf("the document describes %d packages, want the 8 items", described)
	}
	slices.Sort(open)
	if want := []string{"hello-kk", "notes"}; !slices.Equal(open, want) {
		t.Errorf("what else is in %q is not known, want %q", open, want)
	}
	for name, want := range map[string]string{
		"libc6":    "pkg:deb/debian/libc6@2.36-9%2Bdeb12u7?arch=amd64&distro=debian-12",
		"tzdata":   "pkg:deb/debian/tzdata@2024a?arch=all&distro=debian-12",
		"musl":     "pkg:apk/alpine/musl@1.2.5-r0?arch=x86_64&distro=alpine-3.20.1",
		"hello-kk": "pkg:deb/debian/hello-kk@1:2.0%2Bb1?arch=arm64&distro=debian-12",
	} {
		if purls[name] != want {
			t.Errorf("%s has the purl %q, want %q", name, purls[name], want)
		}
	}
	if p := purls["docker.io/library/alpine:3.20"]; !strings.HasPrefix(p, "pkg:oci/alpine@sha256:") ||
		!strings.HasSuffix(p, "?repository_url=index.docker.io%2Flibrary%2Falpine&tag=3.20") {
		t.Errorf("the image has the purl %q", p)
	}
	licences := map[string]string{}
	for _, p := range doc.Packages {
		licences[p.PackageName] = p.PackageLicenseDeclared
		if p.PackageName == "kubeadm" && (p.PackageDownloadLocation != "https://dl.example.com/kubeadm" ||
			len(p.PackageChecksums) != 1 || !strings.Contains(p.PackageComment, "go-version: go1")) {
			t.Errorf("kubeadm is %+v", p)
		}
	}
	if dep := doc.Packages[slices.IndexFunc(doc.Packages, func(p *spdx.Package) bool {
		return p.PackageName == "../dep"
	})]; dep.PackageComment != "replaces: example.com/dep@v1.2.3" || dep.PackageVersion != "" {
		t.Errorf("the module that replaces another one is %+v", dep)
	}
	if licences["kubeadm"] != "Apache-2.0" || licences["musl"] != "MIT" || licences["runc"] != noAssertion ||
		!strings.HasPrefix(licences["odd"], "LicenseRef-") || len(doc.OtherLicenses) != 2 {
		t.Errorf("licences are %v, and %d of them not expressions", licences, len(doc.OtherLicenses))
	}
}

func TestCycloneDX(t *testing.T) {
	bom := checkCycloneDX(t, document(t, all(t), "", CycloneDX))
	names, contains := map[string]string{}, map[string][]string{}
	for _, c := range *bom.Components {
		names[c.BOMRef] = c.Name
	}
	for _, d := range *bom.Dependencies {
		if d.Ref == offlineFile {
			if len(*d.Dependencies) != 8 {
				t.Errorf("the file has %d items, want 8", len(*d.Dependencies))
			}
			continue
		}
		contains[d.Ref] = *d.Dependencies
	}
	sameTree(t, tree(names, contains), wantTree())
	if open := *(*bom.Compositions)[0].Dependencies; len(open) != 2 {
		t.Errorf("what else is in %d components is not known, want 2", len(open))
	}
}

func TestSameBytes(t *testing.T) {
	f, cache := all(t), t.TempDir()
	for _, format := range Formats() {
		first := document(t, f, "", format)
		for range 2 { // fills the cache, and reads it
			if !bytes.Equal(document(t, f, cache, format), first) {
				t.Errorf("%s: another document of the same file", format)
			}
		}
	}
}

// counting counts what is read of a file.
type counting struct {
	*artifact.File
	blobs, contents int
}

func (c *counting) Blob(digest string) (io.Reader, error) {
	c.blobs++
	return c.File.Blob(digest)
}

func (c *counting) Content(i artifact.Item) (io.ReadCloser, error) {
	c.contents++
	return c.File.Content(i)
}

func TestCacheIsUsed(t *testing.T) {
	f, cache := all(t), t.TempDir()
	first := document(t, f, cache, SPDX)
	counted := &counting{File: f}
	again, err := Make(t.Context(), f.Manifest, counted, cache, SPDX)
	if err != nil || !bytes.Equal(again, first) {
		t.Error("another document", err)
	}
	if counted.contents > 0 || counted.blobs != 2 {
		t.Errorf("%d contents and %d blobs were read, want 0 and the 2 manifests of images", counted.contents, counted.blobs)
	}
	files, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(files) != 9 {
		t.Errorf("%q %v are in the cache, want 9 files", files, err)
	}
	for what, damage := range map[string]func(text []byte) []byte{
		"cut off": func([]byte) []byte { return []byte(`{"programs":`) },
		"empty":   func([]byte) []byte { return nil },
		"changed": func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\"1."), []byte("\"2.")) },
		"longer":  func(text []byte) []byte { return append(text, " {}"...) },
	} {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(document(t, f, cache, SPDX), first) {
			t.Errorf("another document from a damaged cache: %s", what)
		}
	}
}

func TestLicences(t *testing.T) {
	for text, want := range map[string]bool{
		"MIT": true, "GPL-2.0+": true, "(MIT OR Apache-2.0) AND BSD-3-Clause": true,
		"GPL-2.0-only WITH Classpath-exception-2.0": true,
		"": false, "MIT AND": false, "AND MIT": false, "MIT Apache-2.0": false, "(MIT": false, "MIT)": false, "()": false,
		"see COPYING": false, "a/b": false,
	} {
		if isLicence(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := Make(t.Context(), &artifact.Manifest{}, nil, "", "xml")
	if err == nil || !strings.Contains(err.Error(), "spdx or cyclonedx") {
		t.Error(err)
	}
}

func TestEmptyFile(t *testing.T) {
	m := &artifact.Manifest{}
	for format, check := range map[Format]func([]byte){
		SPDX: func(b []byte) { checkSPDX(t, b) }, CycloneDX: func(b []byte) { checkCycloneDX(t, b) },
	} {
		text, err := Make(t.Context(), m, nil, "", format)
		if err != nil || !json.Valid(text) {
			t.Fatal(err)
		}
		check(text)
	}
}

// damagedEnd has blobs that are damaged behind everything that a reader of JSON needs.
type damagedEnd struct{ *artifact.File }

func (d damagedEnd) Blob(digest string) (io.Reader, error) {
	r, err := d.File.Blob(digest)
	return io.MultiReader(r, iotest.ErrReader(errors.New("damaged at its end"))), err
}

// The manifests of images are verified to their ends.
func TestDamagedManifest(t *testing.T) {
	f := all(t)
	text, err := Make(t.Context(), f.Manifest, damagedEnd{f}, "", SPDX)
	if n := strings.Count(string(text), "damaged at its end"); err != nil || n != 2 {
		t.Errorf("%d of 2 manifests are reported: %v", n, err)
	}
}

// An address that a document cannot name is not a place for a password either.
func TestSecretSource(t *testing.T) {
	c := fromItem(artifact.Item{Source: "https://ada:secret@example.com/a?x=|"})
	for _, f := range c.facts {
		if strings.Contains(f.value, "secret") {
			t.Error(f)
		}
	}
}
