package schema_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// authored is a suite of cases as authors of an API write them.
type authored struct {
	Version      string
	FeatureGates []string // that are on, or with a minus off
	Tests        struct {
		OnCreate []authoredCase
		OnUpdate []authoredCase
	}
}

// authoredCase creates an object, perhaps by an older definition, and updates it, then its status.
type authoredCase struct {
	Name                string
	InitialCRDPatches   []json.RawMessage
	Initial             string
	Updated             string
	Expected            string
	ExpectedError       string
	ExpectedStatusError string
}

// authoredFiles reads the archive of suites and definitions.
func authoredFiles(t *testing.T) map[string][]byte {
	t.Helper()
	name := filepath.Join(suites(t), "data", "openshift-api", "openshift-api.tar.gz")
	f, err := os.Open(name)
	if err != nil {
		t.Skipf("the cases of openshift/api are not here: %v (set SUITES_DIR)", err)
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg && path.Ext(header.Name) == ".yaml" {
			if files[path.Clean(header.Name)], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// sides are a version of a definition as both of us compile it.
type sides struct {
	kubernetes *schematest.Kubernetes
	own        *schema.Schema
	status     bool // is written by itself
}

// newSides compiles the version of a definition, with patches of its own.
func newSides(t *testing.T, raw []byte, patches []json.RawMessage, version string) *sides {
	t.Helper()
	text := raw
	if len(patches) > 0 {
		patch, err := json.Marshal(patches)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(patch)
		if err == nil {
			text, err = decoded.Apply(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	versions, _, errs := schema.CompileCRD(crd)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	at := 0
	if version != "" {
		at = slices.IndexFunc(versions, func(v schema.Version) bool { return v.Name == version })
	}
	if at < 0 {
		t.Fatalf("the definition has no version %s", version)
	}
	kube, err := schematest.NewKubernetes(crd.Spec.Versions[at].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	kube.Namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
	return &sides{kubernetes: kube, own: versions[at].Schema, status: versions[at].Status}
}

// definition is the definition that a suite is about: with the fields of the feature gates that are on. ok is false if
// a gate has no fields of its own in the archive.
func (a *authored) definition(t *testing.T, files map[string][]byte, name string) (merged []byte, ok bool) {
	t.Helper()
	folder := strings.Replace(path.Dir(name), "/tests/", "/zz_generated.featuregated-crd-manifests/", 1)
	if !strings.Contains(folder, "featuregated") {
		return nil, false // of an aggregated API
	}
	gates := append([]string{strings.TrimSuffix(path.Base(name), ".yaml")}, a.FeatureGates...)
	if strings.HasPrefix(gates[0], "ExternalOIDCWithUpstream") || strings.HasPrefix(gates[0], "ExternalOIDCExternal") {
		gates = append(gates, "ExternalOIDC") // has a field that their rules read
	}
	var parts [][]byte
	for _, gate := range gates {
		if raw, found := files[folder+"/"+gate+".yaml"]; found {
			parts = append(parts, raw)
		}
	}
	if raw, found := files[folder+"/AAA_ungated.yaml"]; found && len(parts) == 0 {
		parts = append(parts, raw)
	}
	all := map[string]any{"metadata": map[string]any{}}
	for _, raw := range parts {
		var part map[string]any
		if err := yaml.Unmarshal(raw, &part); err != nil {
			t.Fatal(err)
		}
		all, ok = united(all, part).(map[string]any), true
	}
	// for the tools that put the parts together; some have no name
	delete(all["metadata"].(map[string]any), "annotations")
	return schematest.Encode(all), ok
}

// united is two parts of a definition in one: lists are put together by names, rules and items.
func united(a, b any) any {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			for name, v := range b {
				if old, found := a[name]; found {
					v = united(old, v)
				}
				a[name] = v
			}
			return a
		}
	case []any:
		if b, ok := b.([]any); ok {
			for _, v := range b {
				at := slices.IndexFunc(a, func(old any) bool { return partName(old) == partName(v) })
				if at < 0 {
					a = append(a, v)
					continue
				}
				a[at] = united(a[at], v)
			}
			return a
		}
	}
	return b
}

// partName names the items of a list in a definition.
func partName(v any) string {
	if m, ok := v.(map[string]any); ok {
		for _, key := range []string{"rule", "name"} {
			if s, ok := m[key].(string); ok {
				return s
			}
		}
	}
	return string(schematest.Encode(map[string]any{"": v}))
}

// A write is what a case does to an object: raw is what the client sends, old what is stored.
type write struct {
	raw      map[string]any
	old      map[string]any
	toStatus bool
}

// place puts the status where it belongs: what a client sends with the object is left out, and what it sends to /status
// is all that is taken of it.
func (s *sides) place(obj, old map[string]any, toStatus bool) map[string]any {
	if !s.status {
		return obj
	}
	from, into := old, obj
	if toStatus {
		from, into = obj, runtime.DeepCopyJSON(old)
	}
	delete(into, "status")
	if status, ok := from["status"]; ok {
		into["status"] = runtime.DeepCopyJSONValue(status)
	}
	return into
}

// outcome is the result of a write on one side.
type outcome struct {
	object   map[string]any // as it would be stored, without its metadata
	failures []schematest.Failure
	text     string // of the failures
	refused  string // another error
}

// theirs plays a write by Kubernetes' packages, in the order of the strategy of custom resources.
func (s *sides) theirs(w write) (o outcome) {
	obj := runtime.DeepCopyJSON(w.raw)
	if _, err := s.kubernetes.Prune(obj); err != nil {
		return outcome{refused: err.Error()}
	}
	s.kubernetes.Default(obj)
	obj = s.place(obj, w.old, w.toStatus)
	failures, err := s.kubernetes.Validate(obj, w.old)
	if err != nil {
		return outcome{refused: err.Error()}
	}
	s.kubernetes.Default(obj) // as the server reads what it stored
	return outcome{object: obj, failures: failures}
}

// ours plays it by our schema.
func (s *sides) ours(t *testing.T, w write) (o outcome) {
	d := parsed(t, string(schematest.Encode(s.place(runtime.DeepCopyJSON(w.raw), w.old, w.toStatus))))
	if err := s.own.Prune(d, nil); err != nil {
		return outcome{refused: err.Error()}
	}
	defaults.Apply(d, s.own)
	var old document.Node
	if w.old != nil {
		old = parsed(t, string(schematest.Encode(w.old))).Root()
	}
	frame := cel.NewFrame(t.Context())
	defer frame.Release()
	result := s.own.Validate(frame, d.Root(), old)
	for _, err := range result.Errors {
		o.text += err.Error() + "\n"
	}
	failures, err := schematest.Failures(result.Errors)
	if err != nil {
		return outcome{refused: err.Error()}
	}
	o.failures = failures
	if o.object, err = schematest.Decode(d.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	return o
}

// authoredRun counts what was played.
type authoredRun struct {
	creates, updates, ratchets, statuses, texts, refusals, undefined, spelled, otherwise int
}

// step plays one write on both sides, and returns what is stored then; ok is false if the write is refused.
func (n *authoredRun) step(t *testing.T, s *sides, w write, wantError string) (stored map[string]any, ok bool) {
	t.Helper()
	theirs, ours := s.theirs(w), s.ours(t, w)
	failures := wholeObject(onlyTooLong(ours.failures, theirs.failures), theirs.failures)
	if strings.Contains(ours.refused, "must be spelled") {
		n.spelled++ // in another case: Kubernetes prunes the field, and a required one is missing then
		return nil, false
	}
	refused := len(theirs.failures) > 0 || theirs.refused != ""
	switch {
	case (theirs.refused != "") != (ours.refused != ""):
		t.Errorf("reading: got %q, want %q", ours.refused, theirs.refused)
	case !slices.Equal(failures, theirs.failures):
		t.Errorf("failures:\n got %v\nwant %v\n%s", failures, theirs.failures, ours.text)
	case !refused && string(withoutMetadata(ours.object)) != string(withoutMetadata(theirs.object)):
		t.Errorf("stored:\n got %s\nwant %s", withoutMetadata(ours.object), withoutMetadata(theirs.object))
	case refused != (wantError != ""):
		t.Logf("Kubernetes' packages say %v %s; the author expects %q", theirs.failures, theirs.refused, wantError)
		n.otherwise++ // the archive has no definition with all gates that the author had on
		return nil, false
	}
	if wantError != "" {
		n.refusals++
		if said(ours.text+ours.refused, wantError) {
			n.texts++
		}
		return nil, false
	}
	return theirs.object, !refused
}

// wholeObject names the whole object where Kubernetes does: we name the field that a rule about it reads.
func wholeObject(got, want []schematest.Failure) []schematest.Failure {
	got = slices.Clone(got)
	for i, f := range got {
		if root := (schematest.Failure{Type: f.Type, Field: "<nil>"}); !slices.Contains(want, f) &&
			slices.Contains(want, root) {
			got[i] = root
		}
	}
	return slices.Compact(got)
}

// said reports whether a refusal says what the author expects: the sentence of the rule, after field and value.
func said(text, want string) bool {
	if strings.Contains(text, want) {
		return true
	}
	parts := strings.Split(want, ": ")
	return strings.Contains(text, strings.TrimSuffix(parts[len(parts)-1], "]"))
}

// withoutMetadata is an object for comparison.
func withoutMetadata(obj map[string]any) []byte {
	copied := maps.Clone(obj)
	delete(copied, "metadata")
	return schematest.Encode(copied)
}

// object reads an object of a case, and gives it a name if it has none.
func (c *authoredCase) object(t *testing.T, text string, s *sides) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj, err := schematest.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	meta, _ := obj["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		obj["metadata"] = meta
	}
	if meta["name"] == nil {
		meta["name"] = "case"
	}
	if s.kubernetes.Namespaced && meta["namespace"] == nil {
		meta["namespace"] = "default"
	}
	return obj
}

// play plays a case: the creation, then the update, then the update of the status.
func (c *authoredCase) play(t *testing.T, n *authoredRun, before, now *sides) {
	sent := c.object(t, c.Initial, before)
	wantError := c.ExpectedError
	if c.Updated != "" {
		wantError = "" // it is of the update
	}
	n.creates++
	stored, ok := n.step(t, before, write{raw: sent}, wantError)
	if !ok {
		return
	}
	if c.Updated == "" {
		c.expect(t, n, stored, now)
		return
	}
	if _, ok := sent["status"]; ok && before.status {
		if stored, ok = n.step(t, before, write{raw: sent, old: stored, toStatus: true}, ""); !ok {
			return
		}
	}
	now.kubernetes.Default(stored)
	n.updates++
	if before != now {
		n.ratchets++
	}
	updated := c.object(t, c.Updated, now)
	updated["metadata"] = stored["metadata"]
	if stored, ok = n.step(t, now, write{raw: updated, old: stored}, c.ExpectedError); !ok {
		return
	}
	if _, ok := updated["status"]; ok && now.status {
		n.statuses++
		if stored, ok = n.step(t, now, write{raw: updated, old: stored, toStatus: true}, c.ExpectedStatusError); !ok {
			return
		}
	} else if c.ExpectedStatusError != "" {
		t.Errorf("there is no status to be refused with %q", c.ExpectedStatusError)
	}
	c.expect(t, n, stored, now)
}

// expect compares what is stored with what the author expects, which may leave the status out.
func (c *authoredCase) expect(t *testing.T, n *authoredRun, stored map[string]any, s *sides) {
	t.Helper()
	if c.Expected == "" {
		return
	}
	want := c.object(t, c.Expected, s)
	if _, ok := want["status"]; !ok {
		stored = maps.Clone(stored)
		delete(stored, "status")
	}
	if got, want := withoutMetadata(stored), withoutMetadata(want); string(got) != string(want) {
		t.Logf("stored %s\nthe author expects %s", got, want)
		n.otherwise++
	}
}

// TestAuthoredCases plays the cases that the authors of OpenShift's APIs wrote (creations, updates,
// writes of the status, definitions that became stricter) by our schemas and by Kubernetes' own
// packages. Both have the same failures and objects, which are those that the authors expect.
func TestAuthoredCases(t *testing.T) {
	files := authoredFiles(t)
	names := slices.Sorted(maps.Keys(files))
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, "/tests/") })
	var n authoredRun
	for i, name := range names {
		if testing.Short() && i%10 != 0 {
			continue
		}
		var suite authored
		if err := yaml.Unmarshal(files[name], &suite); err != nil {
			t.Fatal(name, err)
		}
		definition, ok := suite.definition(t, files, name)
		if !ok {
			t.Logf("%s: the archive has no definition", name)
			n.undefined++
			continue
		}
		t.Run(name, func(t *testing.T) {
			now := newSides(t, definition, nil, suite.Version)
			older := map[string]*sides{}
			for _, c := range append(suite.Tests.OnCreate, suite.Tests.OnUpdate...) {
				before := now
				if len(c.InitialCRDPatches) > 0 {
					key := string(schematest.Encode(map[string]any{"patches": c.InitialCRDPatches}))
					if before = older[key]; before == nil {
						before = newSides(t, definition, c.InitialCRDPatches, suite.Version)
						older[key] = before
					}
				}
				t.Run(c.Name, func(t *testing.T) { c.play(t, &n, before, now) })
			}
		})
	}
	t.Logf("%d creations, %d updates (%d of them by a definition that became stricter), %d writes of the status; %d of %d refusals in the authors' words",
		n.creates, n.updates, n.ratchets, n.statuses, n.texts, n.refusals)
	t.Logf("%d suites without a definition; %d writes with a field in another case; %d with which Kubernetes' packages do otherwise than the author expects",
		n.undefined, n.spelled, n.otherwise)
	if !testing.Short() && (n.creates < 2000 || n.updates < 600 || n.ratchets < 70 || n.texts < n.refusals*3/4 ||
		n.undefined > 3 || n.spelled > 4 || n.otherwise > 27) {
		t.Error("fewer cases were played than there are")
	}
}
