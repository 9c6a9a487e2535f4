package lint

import (
	"encoding/json"
	"io"
	"path/filepath"

	"kubekey/pkg/source"
)

// loading is the rule id of problems found when linking, in JSON and SARIF.
const loading = "load"

// entry is one finding in JSON.
type entry struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"` // error or warning
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"` // in characters, from 1
	Message  string `json:"message"`
	Help     string `json:"help,omitempty"`
}

func entryOf(f Finding) entry {
	e := entry{Rule: f.id(), Severity: "warning", File: filepath.ToSlash(fileOf(f.Pos)), Line: f.Pos.Line,
		Column: f.Pos.Col, Message: f.Summary, Help: f.Help}
	if f.Severity == source.Error {
		e.Severity = "error"
	}
	return e
}

func (f Finding) id() string {
	if f.Rule == "" {
		return loading
	}
	return f.Rule
}

// WriteJSON writes the findings as one list.
func WriteJSON(w io.Writer, found []Finding) error {
	list := make([]entry, len(found))
	for i, f := range found {
		list[i] = entryOf(f)
	}
	return indented(w, list)
}

func indented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

type (
	text struct {
		Text string `json:"text"`
	}
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Columns string        `json:"columnKind"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string `json:"id"`
		Short text   `json:"shortDescription"`
		Full  text   `json:"fullDescription"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   text            `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				Line   int `json:"startLine"`
				Column int `json:"startColumn,omitempty"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

// WriteSARIF writes the findings as SARIF 2.1.0, which code hosts and editors
// read. version is that of kk.
// Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/
func WriteSARIF(w io.Writer, version string, found []Finding) error {
	run := sarifRun{Columns: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "kk", Version: version, Rules: []sarifRule{
		{loading, text{"what cannot be run"}, text{"Syntax, keywords, modules, arguments, expressions, roles and files."}},
	}}
	for _, r := range Rules() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{r.ID, text{r.Summary}, text{r.Why}})
	}
	for _, f := range found {
		e := entryOf(f)
		r := sarifResult{Rule: e.Rule, Level: e.Severity, Message: text{e.Message}}
		if e.Help != "" {
			r.Message.Text += " (" + e.Help + ")"
		}
		if e.File != "" {
			var at sarifLocation
			at.Physical.Artifact.URI = e.File
			at.Physical.Region.Line, at.Physical.Region.Column = max(e.Line, 1), e.Column
			r.Locations = []sarifLocation{at}
		}
		run.Results = append(run.Results, r)
	}
	return indented(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}
