package sbom

import (
	"bytes"
	"strings"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	noAssertion = "NOASSERTION"
	toolName    = "kk"
	// spdxCreated is the time that the format requires. The document follows from the file alone, so it has none.
	spdxCreated = "1970-01-01T00:00:00Z"
)

// writeSPDX writes an inventory as SPDX 2.3.
func writeSPDX(inv *inventory) ([]byte, error) {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: inv.name,
		DocumentNamespace: inv.id.URN(), DocumentComment: scope,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: toolName}}, Created: spdxCreated,
			CreatorComment: "The same offline file has the same document, so it has no time.",
		},
	}
	others := map[string]*spdx.OtherLicense{}
	for _, r := range inv.items {
		doc.Relationships = append(doc.Relationships, relation("DOCUMENT", common.TypeRelationshipDescribe, r))
	}
	for _, c := range inv.sorted() {
		doc.Packages = append(doc.Packages, spdxPackage(c, others))
		for _, r := range c.inside() {
			doc.Relationships = append(doc.Relationships, relation(c.ref, common.TypeRelationshipContains, r))
		}
		if c.open {
			doc.Relationships = append(doc.Relationships, &spdx.Relationship{
				RefA: common.MakeDocElementID("", c.ref), RefB: common.MakeDocElementSpecial(noAssertion),
				Relationship: common.TypeRelationshipContains, RelationshipComment: "What else is in it is not known.",
			})
		}
	}
	for _, c := range inv.sorted() {
		if other := others[c.licence]; other != nil {
			doc.OtherLicenses = append(doc.OtherLicenses, other)
			delete(others, c.licence)
		}
	}
	var b bytes.Buffer
	err := spdxjson.Write(doc, &b, spdxjson.Indent(" "), spdxjson.EscapeHTML(false))
	return b.Bytes(), err
}

func relation(from, kind, to string) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.MakeDocElementID("", from), RefB: common.MakeDocElementID("", to),
		Relationship: kind}
}

// purposes are the names of sorts in SPDX.
var purposes = map[sort]string{
	sortFile: "FILE", sortImage: "CONTAINER", sortPackage: "INSTALL", sortProgram: "APPLICATION", sortLibrary: "LIBRARY",
}

func spdxPackage(c *component, others map[string]*spdx.OtherLicense) *spdx.Package {
	p := &spdx.Package{
		PackageName: c.name, PackageSPDXIdentifier: common.ElementID(c.ref), PackageVersion: c.version,
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion,
		PackageLicenseDeclared: spdxLicence(c.licence, others), PackageCopyrightText: noAssertion,
		PackageSupplier: &common.Supplier{Supplier: noAssertion}, PrimaryPackagePurpose: purposes[c.sort],
	}
	if c.download != "" {
		p.PackageDownloadLocation = c.download
	}
	if c.sha256 != "" {
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: c.sha256}}
	}
	if c.purl != "" {
		p.PackageExternalReferences = []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager,
			RefType: common.TypePackageManagerPURL, Locator: c.purl}}
	}
	var facts []string
	for _, f := range c.facts {
		facts = append(facts, f.name+": "+f.value)
	}
	p.PackageComment = strings.Join(facts, "\n")
	return p
}

// spdxLicence returns a licence as an expression. A text that is none gets a name in the document.
func spdxLicence(licence string, others map[string]*spdx.OtherLicense) string {
	switch {
	case licence == "":
		return noAssertion
	case isLicence(licence):
		return licence
	}
	if others[licence] == nil {
		others[licence] = &spdx.OtherLicense{LicenseIdentifier: ref("LicenseRef", licence), LicenseName: licence,
			ExtractedText: licence, LicenseComment: "This is all that is known of the licence."}
	}
	return others[licence].LicenseIdentifier
}
