package vap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cases"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// suites is the folder of recorded cases.
func suites(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "suites")
	}
	if _, err := os.Stat(filepath.Join(dir, "cases")); err != nil {
		t.Skipf("the recorded suites are not in %s: set SUITES_DIR", dir)
	}
	return dir
}

func read(t *testing.T, file string) []cases.Case {
	t.Helper()
	all, err := cases.Read(filepath.Join(suites(t), "cases", file))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// objects are the policies, bindings and other objects of a case, as JSON.
func objects(t *testing.T, c *cases.Case) []json.RawMessage {
	t.Helper()
	all := c.PolicyObjects
	for _, file := range c.PolicyFiles {
		text, err := os.ReadFile(filepath.Join(suites(t), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range bytes.Split(text, []byte("\n---")) {
			object, err := yaml.YAMLToJSON(part)
			if err != nil {
				t.Fatal(file, err)
			}
			if string(object) != "null" {
				all = append(all, object)
			}
		}
	}
	return all
}

// loaded is a set of policies, with what else the files hold.
type loaded struct {
	policies []*admissionv1.ValidatingAdmissionPolicy
	bindings []*admissionv1.ValidatingAdmissionPolicyBinding
	others   []json.RawMessage
}

func load(t *testing.T, objects []json.RawMessage) loaded {
	t.Helper()
	var l loaded
	for _, object := range objects {
		var meta metav1.TypeMeta
		into := func(v any) {
			if err := json.Unmarshal(object, v); err != nil {
				t.Fatal(err)
			}
		}
		into(&meta)
		switch meta.Kind {
		case "ValidatingAdmissionPolicy":
			p := &admissionv1.ValidatingAdmissionPolicy{}
			into(p)
			l.policies = append(l.policies, p)
		case "ValidatingAdmissionPolicyBinding":
			b := &admissionv1.ValidatingAdmissionPolicyBinding{}
			into(b)
			l.bindings = append(l.bindings, b)
		default:
			l.others = append(l.others, object)
		}
	}
	return l
}

func (l loaded) bindingsOf(t *testing.T, policy string) []*Binding {
	t.Helper()
	var compiled []*Binding
	for _, b := range l.bindings {
		if b.Spec.PolicyName != policy {
			continue
		}
		c, errs := CompileBinding(b)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		compiled = append(compiled, c)
	}
	return compiled
}

// attributesOf are the attributes of a recorded request.
func attributesOf(t *testing.T, method, path string, object, old json.RawMessage) *admission.Attributes {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	i := &resource.Info{IsResource: true, APIPrefix: parts[0], Path: path}
	if parts[0] == "api" {
		i.Version, parts = parts[1], parts[2:]
	} else {
		i.Group, i.Version, parts = parts[1], parts[2], parts[3:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		i.Namespace, parts = parts[1], parts[2:]
	}
	i.Resource = parts[0]
	if len(parts) > 1 {
		i.Name = parts[1]
	}
	if len(parts) > 2 {
		i.Subresource = parts[2]
	}
	if i.IsNamespaces() {
		i.Namespace = i.Name
	}
	a := &admission.Attributes{
		Info: i,
		Operation: map[string]admission.Operation{"POST": admission.Create, "PUT": admission.Update,
			"DELETE": admission.Delete}[method],
		User:  &identity.User{Name: "tester"},
		Frame: cel.NewFrame(context.Background()),
	}
	t.Cleanup(a.Frame.Release)
	parse := func(body json.RawMessage) *document.Document {
		if body == nil {
			return nil
		}
		d, err := document.Parse(body, document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Release)
		return d
	}
	a.Object, a.Old = parse(object), parse(old)
	return a
}

// compare compares a report with a recorded answer. If several validations failed, the recorded
// answer names the first of them.
func compare(t *testing.T, c *cases.Case, r *admission.Report, a *admission.Attributes) {
	t.Helper()
	answer := r.Err(a)
	if c.Expect.Code < 300 {
		if answer != nil {
			t.Errorf("denied: %s", status.From(answer).ErrStatus.Message)
		}
		return
	}
	if answer == nil {
		t.Fatalf("not denied, want %d: %s", c.Expect.Code, c.Expect.Message)
	}
	got := status.From(answer).ErrStatus
	if got.Code != int32(c.Expect.Code) || string(got.Reason) != *c.Expect.Reason {
		t.Errorf("got %d %s, want %d %s", got.Code, got.Reason, c.Expect.Code, *c.Expect.Reason)
	}
	if got.Message != c.Expect.Message && !strings.HasPrefix(got.Message, c.Expect.Message+"; ") {
		t.Errorf("message\ngot  %s\nwant %s", got.Message, c.Expect.Message)
	}
	if len(got.Details.Causes) == 0 || got.Details.Causes[0].Message != c.Expect.Causes[0].Message {
		t.Errorf("causes %v, want first %v", got.Details.Causes, c.Expect.Causes)
	}
}

// TestRecordedLab plays what a real kube-apiserver answered to requests that small policies match.
func TestRecordedLab(t *testing.T) {
	// What is decided before or after validating admission, or needs defaults, is not played here.
	elsewhere := []string{"unknown-strict", "put-denied-stale", "put-denied-no-rv", "not-found", "schema", "crd-cel",
		"metadata-invalid", "generate",
		"yaml-denied", "sees-null-pruned", "sees-pruned", "status-extra-segment", "collection-denied", "dryrun-denied",
		"deletecollection", "cel-map-keys"}
	played := 0
	for _, c := range read(t, "vap-map-lab.jsonl") {
		if !strings.HasPrefix(c.ID, "vap/") || c.Request.Method == "PATCH" || c.Request.RawBody != nil {
			continue
		}
		skip := false
		for _, part := range elsewhere {
			skip = skip || strings.Contains(c.ID, part)
		}
		if skip {
			continue
		}
		l := load(t, objects(t, &c))
		played++
		t.Run(c.ID, func(t *testing.T) {
			var validators []admission.Validator
			for _, p := range l.policies {
				compiled, errs := Compile(p, l.bindingsOf(t, p.Name)...)
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				validators = append(validators, compiled)
			}
			var old json.RawMessage
			if c.Request.Method != "POST" && len(c.Setup) > 0 {
				old = c.Setup[len(c.Setup)-1].Body
				for _, s := range c.Setup {
					if strings.Contains(string(s.Body), fmt.Sprintf("%q", filepath.Base(c.Request.Path))) {
						old = s.Body
					}
				}
			}
			a := attributesOf(t, c.Request.Method, c.Request.Path, c.Request.Body, old)
			a.Lookup = l.lookup()
			var r admission.Report
			admission.NewChain(nil, validators).Validate(context.Background(), a, &r)
			compare(t, &c, &r, a)
			if c.Expect.Code < 500 {
				var want []string
				for _, w := range c.Expect.Warnings {
					if strings.Contains(w, "ValidatingAdmissionPolicy") {
						want = append(want, w)
					}
				}
				var got []string
				for _, w := range r.Warnings() {
					got = append(got, fmt.Sprintf(`299 - "%s"`, w))
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("warnings\ngot  %v\nwant %v", got, want)
				}
			}
		})
	}
	if played < 50 {
		t.Errorf("only %d cases played", played)
	}
}

// withoutInternals replaces what Kubernetes says of Go's types and functions in three of the cases.
var withoutInternals = strings.NewReplacer(
	"unsupported conversion to ref.Val: (*dynamicpb.Message)", "no value of the language can be made of another type",
	`ParseAddr("192.168.0.1.0"): `, "",
	`network address parse error during conversion from string: netip.ParsePrefix("fe80::1%en0/24"): `, "",
)

// TestRecordedExpressions plays CEL's own conformance expressions, each the validation of a policy.
func TestRecordedExpressions(t *testing.T) {
	for _, c := range read(t, "cel-spec.jsonl") {
		t.Run(strings.TrimPrefix(c.ID, "celspec/"), func(t *testing.T) {
			l := load(t, objects(t, &c))
			p := l.policies[0]
			compiled, errs := Compile(p, l.bindingsOf(t, p.Name)...)
			if len(errs) > 0 {
				// A kube-apiserver that has stored such a policy denies with the compiler's words.
				_, words, found := strings.Cut(c.Expect.Message, "compilation error: ")
				if !found || !strings.HasSuffix(errs[0].Detail, words) {
					t.Fatalf("does not compile: %v\nwant %d %s", errs, c.Expect.Code, c.Expect.Message)
				}
				return
			}
			a := attributesOf(t, c.Request.Method, c.Request.Path, c.Request.Body, nil)
			var r admission.Report
			admission.NewChain(nil, []admission.Validator{compiled}).Validate(context.Background(), a, &r)
			c.Expect.Message = withoutInternals.Replace(c.Expect.Message)
			for i := range c.Expect.Causes {
				c.Expect.Causes[i].Message = withoutInternals.Replace(c.Expect.Causes[i].Message)
			}
			compare(t, &c, &r, a)
		})
	}
}

// TestRecordedKubescape plays the policies of Kubescape with their parameter objects.
func TestRecordedKubescape(t *testing.T) {
	for _, c := range testutil.Sampled(3, read(t, "vap-kubescape.jsonl")) {
		t.Run(c.ID, func(t *testing.T) {
			l := load(t, objects(t, &c))
			compiled, errs := Compile(l.policies[0], l.bindingsOf(t, l.policies[0].Name)...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			a := attributesOf(t, c.Request.Method, c.Request.Path, c.Request.Body, nil)
			a.Lookup = l.lookup()
			compare(t, &c, run(t, a, compiled), a)
		})
	}
}

// lookup has everything in the files that is no policy.
func (l loaded) lookup() *admissiontest.Lookup {
	lookup := &admissiontest.Lookup{}
	for _, object := range l.others {
		lookup.Add(string(object))
		var crd apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(object, &crd); err == nil {
			for _, v := range crd.Spec.Versions {
				lookup.Others = append(lookup.Others,
					schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name,
						Resource: crd.Spec.Names.Plural})
			}
		}
	}
	return lookup
}

// TestRecordedLoading plays what a real kube-apiserver said of policies and bindings that it refused.
func TestRecordedLoading(t *testing.T) {
	for _, c := range read(t, "policy-load.jsonl") {
		if !strings.HasPrefix(c.ID, "load/vap/") && !strings.HasPrefix(c.ID, "load/binding/") ||
			strings.HasSuffix(c.ID, "/v1alpha1") {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			l := load(t, []json.RawMessage{c.Request.Body})
			var errs field.ErrorList
			if len(l.policies) > 0 {
				_, errs = Compile(l.policies[0])
			} else {
				_, errs = CompileBinding(l.bindings[0])
			}
			var got, want []string
			for _, err := range errs {
				got = append(got, err.Field+": "+err.ErrorBody())
			}
			for _, cause := range c.Expect.Causes {
				want = append(want, cause.Field+": "+cause.Message)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Errorf("findings\ngot  %q\nwant %q", got, want)
			}
		})
	}
}

// info is of a create of a deployment.
func info() *resource.Info {
	return &resource.Info{Verb: resource.VerbCreate, IsResource: true, APIPrefix: "apis", Group: "apps", Version: "v1",
		Resource: "deployments", Namespace: "team-a"}
}
