package sbom

import (
	"bytes"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// offlineFile is the ref of the component that is the offline file.
const offlineFile = "OfflineFile"

// property is the prefix of the names of kk's properties.
const property = "kk:"

// writeCycloneDX writes an inventory as CycloneDX 1.6.
func writeCycloneDX(inv *inventory) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	// Only fields of 1.6 are used. EncodeVersion would copy everything first.
	bom.SpecVersion, bom.JSONSchema = cyclonedx.SpecVersion1_6, "http://cyclonedx.org/schema/bom-1.6.schema.json"
	bom.SerialNumber = inv.id.URN()
	bom.Metadata = &cyclonedx.Metadata{
		Tools: &cyclonedx.ToolsChoice{Components: &[]cyclonedx.Component{
			{Type: cyclonedx.ComponentTypeApplication, Name: toolName}}},
		Component: &cyclonedx.Component{BOMRef: offlineFile, Type: cyclonedx.ComponentTypeFile, Name: inv.name},
		Properties: &[]cyclonedx.Property{{Name: property + "scope", Value: scope},
			{Name: property + "licence", Value: noAssertion + " for components without licenses"}},
	}
	components := []cyclonedx.Component{}
	dependencies := []cyclonedx.Dependency{{Ref: offlineFile, Dependencies: &inv.items}}
	var open []cyclonedx.BOMReference
	for _, c := range inv.sorted() {
		components = append(components, cyclonedxComponent(c))
		inside := c.inside()
		if len(inside) > 0 {
			dependencies = append(dependencies, cyclonedx.Dependency{Ref: c.ref, Dependencies: &inside})
		}
		if c.open {
			open = append(open, cyclonedx.BOMReference(c.ref))
		}
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	if len(open) > 0 {
		bom.Compositions = &[]cyclonedx.Composition{
			{Aggregate: cyclonedx.CompositionAggregateIncomplete, Dependencies: &open}}
	}
	var b bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
	return b.Bytes(), err
}

// kinds are the names of sorts in CycloneDX.
var kinds = map[sort]cyclonedx.ComponentType{
	sortFile: cyclonedx.ComponentTypeFile, sortImage: cyclonedx.ComponentTypeContainer,
	sortPackage: cyclonedx.ComponentTypeLibrary, sortProgram: cyclonedx.ComponentTypeApplication,
	sortLibrary: cyclonedx.ComponentTypeLibrary,
}

func cyclonedxComponent(c *component) cyclonedx.Component {
	out := cyclonedx.Component{BOMRef: c.ref, Type: kinds[c.sort], Name: c.name, Version: c.version, PackageURL: c.purl}
	if c.sha256 != "" {
		out.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: c.sha256}}
	}
	if c.download != "" {
		out.ExternalReferences = &[]cyclonedx.ExternalReference{{Type: cyclonedx.ERTypeDistribution, URL: c.download}}
	}
	switch {
	case c.licence == "":
	case isLicence(c.licence):
		out.Licenses = &cyclonedx.Licenses{{Expression: c.licence}}
	default:
		out.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{Name: c.licence}}}
	}
	var facts []cyclonedx.Property
	for _, f := range c.facts {
		facts = append(facts, cyclonedx.Property{Name: property + f.name, Value: f.value})
	}
	if len(facts) > 0 {
		out.Properties = &facts
	}
	return out
}
