package scan

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
)

const (
	policyReportVersion = "wgpolicyk8s.io/v1alpha2"
	// maxResults and maxReportBytes bound one PolicyReport: an API server takes objects up to about 1.5 MB.
	maxResults     = 500
	maxReportBytes = 900 << 10
	// policySource names who made a result.
	policySource = "admission-gateway"
)

type reportSummary struct {
	Pass  int64 `json:"pass"`
	Fail  int64 `json:"fail"`
	Warn  int64 `json:"warn"`
	Error int64 `json:"error"`
	Skip  int64 `json:"skip"`
}

type reportedObject struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	UID        string `json:"uid,omitempty"`
}

type reportResult struct {
	Policy     string            `json:"policy"`
	Rule       string            `json:"rule,omitempty"`
	Result     string            `json:"result"`
	Message    string            `json:"message,omitempty"`
	Source     string            `json:"source"`
	Scored     bool              `json:"scored"`
	Resources  []reportedObject  `json:"resources,omitempty"`
	Timestamp  reportTime        `json:"timestamp"`
	Properties map[string]string `json:"properties,omitempty"`
}

type reportTime struct {
	Seconds int64 `json:"seconds"`
	Nanos   int32 `json:"nanos"`
}

type policyReport struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]any    `json:"metadata"`
	Summary    *reportSummary    `json:"summary,omitempty"`
	Results    []json.RawMessage `json:"results,omitempty"`
}

// results are the results of an effect, in the words of PolicyReports.
var results = map[Effect]string{Deny: "fail", Audit: "fail", Warn: "warn", Ignored: "error", Unjudged: "error",
	Change: "warn"}

// builtinPolicy names what judges beside policies.
const builtinPolicy = "schema"

// now is the time of results; tests set it.
var now = time.Now

// writePolicyReports writes a PolicyReport for each namespace and a ClusterPolicyReport for objects
// in none, each in a line, in parts if one would be too large. The first part of each has the
// counts.
func (r *Report) writePolicyReports(w io.Writer) error {
	byNamespace := map[string][]*Finding{}
	for namespace := range r.Namespaces {
		byNamespace[namespace] = nil
	}
	for i := range r.Listed {
		f := &r.Listed[i]
		namespace := f.Namespace
		if namespace != "" && len(validation.ValidateNamespaceName(namespace, false)) > 0 {
			namespace = "" // nothing can be stored there
		}
		byNamespace[namespace] = append(byNamespace[namespace], f)
	}
	at := reportTime{now().Unix(), 0}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		if namespace == others || namespace != "" && len(validation.ValidateNamespaceName(namespace, false)) > 0 {
			continue
		}
		for _, p := range r.reportsOf(namespace, byNamespace[namespace], at) {
			text, err := json.Marshal(p)
			if err != nil {
				return err
			}
			if _, err := w.Write(append(text, '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportsOf returns the reports of a namespace.
func (r *Report) reportsOf(namespace string, found []*Finding, at reportTime) (all []*policyReport) {
	size := 0
	begin := func() {
		name := "gateway-scan"
		if len(all) > 0 {
			name = fmt.Sprintf("gateway-scan-%d", len(all)+1)
		}
		p := &policyReport{
			APIVersion: policyReportVersion, Kind: "PolicyReport",
			Metadata: map[string]any{"name": name,
				"labels": map[string]string{"app.kubernetes.io/managed-by": policySource}},
		}
		if p.Metadata["namespace"] = namespace; namespace == "" {
			p.Kind = "ClusterPolicyReport"
			delete(p.Metadata, "namespace")
		}
		all, size = append(all, p), 0
	}
	begin()
	if count := r.Namespaces[namespace]; count != nil {
		all[0].Summary = &reportSummary{Pass: count.Passed, Fail: count.Denied + count.Audited, Warn: count.Warned,
			Error: count.Unjudged}
	}
	for _, f := range found {
		text, err := json.Marshal(f.result(at))
		if err != nil {
			continue // there are only texts and numbers in it
		}
		last := all[len(all)-1]
		if len(last.Results) == maxResults || size+len(text) > maxReportBytes {
			begin()
			last = all[len(all)-1]
		}
		last.Results = append(last.Results, text)
		size += len(text) + 1
	}
	return all
}

// result returns a finding in the words of PolicyReports.
func (f *Finding) result(at reportTime) reportResult {
	o := reportedObject{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, UID: f.UID, APIVersion: f.Version}
	if f.Group != "" {
		o.APIVersion = f.Group + "/" + f.Version
	}
	one := reportResult{
		Policy: f.Policy, Rule: f.Binding, Result: results[f.Effect], Message: f.Message, Source: policySource,
		Scored:    f.Effect != Warn,
		Timestamp: at,
	}
	if o.Kind != "" {
		one.Resources = []reportedObject{o}
	}
	if one.Policy == "" {
		one.Policy = builtinPolicy
	}
	properties := map[string]string{"effect": string(f.Effect), "change": f.Change, "field": f.Field,
		"place": f.Place(), "before": f.Old}
	maps.DeleteFunc(properties, func(_, value string) bool { return value == "" })
	one.Properties = properties
	return one
}
