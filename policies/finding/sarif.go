package finding

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"
)

// The parts of SARIF 2.1.0 that are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPlace `json:"physicalLocation"`
	}
	sarifPlace struct {
		ArtifactLocation struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// Loader is the id of findings of the loader of policy files itself.
const Loader = "policy-file"

func writeSARIF(w io.Writer, found []Finding, checks []Check) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "gateway", InformationURI: "https://github.com/admission-gateway/gateway",
		Rules: []sarifRule{}}
	known := append([]Check{{ID: Loader, Why: "what keeps a policy file from doing what its author means"}}, checks...)
	for _, f := range found {
		id := f.Rule
		if id == "" {
			id = Loader
		}
		rule := sarifRule{ID: id, ShortDescription: sarifText{id}}
		if i := slices.IndexFunc(known, func(c Check) bool { return c.ID == id }); i >= 0 {
			rule.ShortDescription.Text = known[i].Why
		}
		if !slices.Contains(run.Tool.Driver.Rules, rule) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
		run.Results = append(run.Results, sarifOf(f, id))
	}
	return encode(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{run}})
}

func sarifOf(f Finding, id string) sarifResult {
	r := sarifResult{RuleID: id, Level: severity(f), Message: sarifText{f.Message}}
	if f.Field != "" {
		r.Message.Text = f.Field + ": " + f.Message
	}
	var at sarifPlace
	at.ArtifactLocation.URI = (&url.URL{Path: filepath.ToSlash(f.File)}).String()
	if f.Line > 0 {
		at.Region = &sarifRegion{f.Line, f.Column}
	}
	r.Locations = []sarifLocation{{at}}
	return r
}
