// Package scaffold writes policy files to start from for an API that is described, or recorded, already: a rollout, a
// limit, and tests that pass. Every test was played before it is written.
package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/assembly"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// MaxBytes bounds a document.
const MaxBytes = manifest.MaxBytes

// A Document is an OpenAPI document that policy files are written for.
type Document struct {
	// Name is the path of the document from the folder of policy files.
	Name string
	// Files are the document, which is the first of them, and the files that it refers to, by their paths.
	Files []source.File
	// Dir is the folder of policy files.
	Dir string
	// IsOwn says that the team that writes the policies owns the document too.
	IsOwn bool
	// recorded has requests of each operation, by method and path, if the document was made of them. It
	// is a guess then, and is observed before it is enforced.
	recorded map[string][]request
}

// isEnforced reports whether the document is enforced from the first.
func (d *Document) isEnforced() bool { return d.IsOwn && d.recorded == nil }

// Policies are policy files to start from.
type Policies struct {
	// Files has the files by their paths from the folder of policy files.
	Files map[string][]byte
	// Cases is how many cases the test has; there is none without one.
	Cases int
	// Upstream is the URL of the API without a path; "" if that is not known.
	Upstream string
	// Remarks are sentences for whoever starts from the files.
	Remarks []string
}

// A Refusal is the error of a description that cannot be loaded.
type Refusal []finding.Finding

// Error implements error.
func (r Refusal) Error() string {
	lines := []string{"the document has errors, and nothing is written:"}
	for _, f := range r {
		lines = append(lines, f.Text())
	}
	lines = append(lines, "an OpenAPI Overlay can mend what its author does not: see 'A document that you do not own' in the documentation")
	return strings.Join(lines, "\n")
}

// ForDocument returns policy files for an OpenAPI document.
func ForDocument(d *Document) (*Policies, error) {
	var found finding.List
	objects, errs := manifest.Read(d.Files[0].Name, d.Files[0].Data)
	if !found.Read(errs) {
		return nil, Refusal(errorsOf(found.Found))
	}
	at := slices.IndexFunc(objects, func(o *manifest.Object) bool { return o.OpenAPI })
	if at < 0 || len(objects) > 1 {
		return nil, errors.New("must be an OpenAPI document")
	}
	objects = assembly.New(d.Files, nil, &found).Objects(objects)
	if finding.HasErrors(found.Found) {
		return nil, Refusal(errorsOf(found.Found))
	}
	described, err := read(objects[0].JSON)
	if err != nil {
		return nil, err
	}
	described.recorded = d.recorded
	if len(described.operations) == 0 {
		return nil, errors.New("must describe at least one operation in `paths`")
	}
	made := &Policies{Files: map[string][]byte{}, Upstream: described.origin}
	base := strings.TrimSuffix(filepath.Base(d.Name), filepath.Ext(d.Name))
	files := slices.Clone(d.Files)
	tested := []string{d.Name}
	if !d.IsOwn {
		name := base + ".overlay.yaml"
		made.Files[name] = overlayOf(d.Name, "How we use "+described.title,
			"# The document stays as its vendor publishes it. What is said otherwise is said here.\n",
			"{defaults: Off}", "# The document says with `default` what the API does. Nothing is filled in.")
		files = append(files, source.File{Name: filepath.Join(d.Dir, name), Data: made.Files[name], Root: d.Dir})
		tested = append(tested, name)
	}
	if !d.isEnforced() {
		made.Files[base+".rollout.yaml"] = overlayOf(d.Name, "How far "+described.title+" is in force",
			"# Requests pass as they come, and the gateway counts what it would refuse: see `gateway status`.\n# Delete this file to enforce the document. The tests leave it out.\n",
			"{rollout: {mode: Observe}}", "")
	}
	compiled := policies.CompileWithPlans(source.Of(files))
	if compiled.Set == nil {
		return nil, Refusal(errorsOf(compiled.Found))
	}
	cases, err := described.play(compiled.Set)
	if err != nil {
		return nil, err
	}
	if len(cases) > 0 {
		made.Files[base+"_test.yaml"] = testOf(base, tested, cases, d.recorded != nil)
		made.Cases = len(cases)
	}
	made.Files[base+".limit.yaml"] = limitOf(base, d.isEnforced())
	return made, nil
}

func errorsOf(found []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool { return f.Severity != finding.Error })
}

// overlayOf returns an overlay that adds settings to the root of a document.
func overlayOf(document, title, comment, settings, why string) []byte {
	var b bytes.Buffer
	b.WriteString(comment)
	fmt.Fprintf(&b, "overlay: 1.0.0\ninfo: {title: %s, version: 1.0.0}\nextends: %s\nactions:\n", quoted(title),
		quoted(relative(document)))
	if why != "" {
		b.WriteString(why + "\n")
	}
	fmt.Fprintf(&b, "- target: $\n  update: {x-admission-gateway-resource: %s}\n", settings)
	return b.Bytes()
}

// relative returns a path from the folder of policy files as a URL has it.
func relative(name string) string { return (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath() }

// limitOf returns a limit of an API.
func limitOf(base string, isEnforced bool) []byte {
	mode, comment := "", ""
	if !isEnforced {
		mode = "  mode: Warn\n"
		comment = "# It only warns and counts: take `mode` out to enforce it.\n"
	}
	return fmt.Appendf(nil, `# Each client may send 50 requests a second, 200 at once. Clients count by their address: with
# identity in the configuration, `+"`key: User`"+` counts by who they are.
%sapiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: %s}
spec:
%s  key: ClientAddress
  requests: 50
  periodSeconds: 1
  burst: 200
`, comment, quoted(label(base)+"-per-client"), mode)
}
