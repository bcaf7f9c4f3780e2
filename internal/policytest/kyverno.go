package policytest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/natives"
	"github.com/admission-gateway/gateway/policies/source"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// kyvernoTest is the test of Kyverno's command line.
type kyvernoTest struct {
	Name                       string
	Metadata                   struct{ Name string }
	Policies, Resources        []string
	ParamResources, Exceptions []string
	Variables, UserInfo        string
	Values                     *kyvernoValues
	Results                    []kyvernoResult
	Checks                     []json.RawMessage
}

// kyvernoResult is what a test expects of a policy and some objects.
type kyvernoResult struct {
	Policy, Kind, Namespace           string
	Result, Status                    string
	Resource                          string
	Resources                         []string
	PatchedResource, PatchedResources string
}

// kyvernoValues are the values of a test. The others, of variables, concern Kyverno's own kinds alone.
type kyvernoValues struct {
	GlobalValues      map[string]any
	NamespaceSelector []struct {
		Name   string
		Labels map[string]string
	}
	Namespaces []json.RawMessage
	Policies   []struct {
		Name      string
		Resources []struct {
			Name   string
			Values map[string]any
		}
	}
}

// named has what names an object.
type named struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace string
		Annotations     map[string]string
	}
	Spec struct{ PolicyName string }
}

// isKyvernoTest reports whether a file is a test of Kyverno's by its name. It need not have a kind.
func isKyvernoTest(name string) bool {
	base := filepath.Base(name)
	return base == "kyverno-test.yaml" || base == "kyverno-test.yml"
}

// readKyverno reads a kyverno-test.yaml. Of its policies those of Kubernetes itself are played.
func readKyverno(s *suite, o *manifest.Object) error {
	var k kyvernoTest
	if err := json.Unmarshal(o.JSON, &k); err != nil {
		return err
	}
	r := kyvernoReader{suite: s, from: o, test: &k, dir: filepath.Dir(s.file)}
	if err := r.read(); err != nil {
		return err
	}
	for i := range k.Results {
		if err := r.result(i, &k.Results[i]); err != nil {
			return fmt.Errorf("results[%d]: %w", i, err)
		}
	}
	for i := range k.Checks {
		one := r.newCase(fmt.Sprintf("checks[%d]", i), cmp.Or(k.Metadata.Name, k.Name, "kyverno-test")+"/"+
			fmt.Sprintf("checks[%d]", i))
		one.skip = "`checks` are assertions about Kyverno's own answers, which the gateway does not have"
	}
	if len(k.Results)+len(k.Checks) == 0 {
		r.newCase("", cmp.Or(k.Metadata.Name, k.Name, "kyverno-test")+"/results").skip = "the test has no `results`"
	}
	return nil
}

// kyvernoReader reads a test with the files that it names.
type kyvernoReader struct {
	suite *suite
	from  *manifest.Object
	test  *kyvernoTest
	dir   string
	files []string // that were read

	policies, objects, shared []json.RawMessage
	user                      *testcase.User
	values                    kyvernoValues
	skip                      string // why no result can be played
}

// newCase adds a case at a path of the file.
func (r *kyvernoReader) newCase(path, id string) *testCase {
	one := &testCase{file: r.suite.file, id: id, files: r.files}
	one.at(r.from, path)
	r.suite.cases = append(r.suite.cases, one)
	return one
}

// read reads the files that a test names.
func (r *kyvernoReader) read() (err error) {
	k := r.test
	if r.policies, err = r.objectsOf("policies", k.Policies); err != nil {
		return err
	}
	if r.objects, err = r.objectsOf("resources", k.Resources); err != nil {
		return err
	}
	if r.shared, err = r.objectsOf("paramResources", k.ParamResources); err != nil {
		return err
	}
	if len(k.Exceptions) > 0 {
		r.skip = "the gateway does not have Kyverno's `exceptions`"
	}
	if k.Values != nil {
		r.values = *k.Values
	}
	if k.Variables != "" {
		if err := r.into(k.Variables, &r.values); err != nil {
			return fmt.Errorf("variables: %w", err)
		}
	}
	if k.UserInfo != "" {
		var info struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
		if err := r.into(k.UserInfo, &info); err != nil {
			return fmt.Errorf("userinfo: %w", err)
		}
		r.user = &testcase.User{Name: info.UserInfo.Username, Groups: info.UserInfo.Groups}
	}
	r.addNamespaces()
	return nil
}

// addNamespaces adds the namespaces of the values to what policies refer to, and those among the objects.
func (r *kyvernoReader) addNamespaces() {
	r.shared = append(r.shared, r.values.Namespaces...)
	for _, n := range r.values.NamespaceSelector {
		labels := map[string]string{"kubernetes.io/metadata.name": n.Name}
		for key, value := range n.Labels {
			labels[key] = value
		}
		namespace, _ := json.Marshal(map[string]any{ // of texts
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n.Name, "labels": labels},
		})
		r.shared = append(r.shared, namespace)
	}
	known := map[string]bool{}
	for _, n := range r.shared {
		known[nameOf(n).Metadata.Name] = known[nameOf(n).Metadata.Name] || nameOf(n).Kind == "Namespace"
	}
	for _, object := range r.objects {
		if n := nameOf(object); n.Kind == "Namespace" && n.APIVersion == "v1" && !known[n.Metadata.Name] {
			r.shared = append(r.shared, object)
		}
	}
}

// into reads a file of values.
func (r *kyvernoReader) into(name string, v any) error {
	file := filepath.Join(r.dir, name)
	r.files = append(r.files, file)
	data, err := ReadObject(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// objectsOf returns the objects of files, of the files of folders, and of the files that patterns match.
func (r *kyvernoReader) objectsOf(field string, named []string) (all []json.RawMessage, err error) {
	for i, name := range named {
		if strings.Contains(name, "://") {
			r.skip = fmt.Sprintf("%s[%d]: '%s' is not a file, and the gateway asks no server for tests", field, i, name)
			continue
		}
		path := filepath.Join(r.dir, name)
		files, isFolder := []string{path}, false
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			files, isFolder = nil, true
			for _, ext := range []string{"*.yaml", "*.yml", "*.json"} {
				more, _ := filepath.Glob(filepath.Join(path, ext)) // of a pattern without faults
				files = append(files, more...)
			}
		} else if errors.Is(err, os.ErrNotExist) && strings.ContainsAny(name, "*?[") {
			if files, err = filepath.Glob(path); err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
			}
		}
		for _, file := range files {
			if isFolder && (!source.IsManifest(file) || isKyvernoTest(file)) {
				continue
			}
			r.files = append(r.files, file)
			more, err := objectsIn(file)
			if err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// result adds the cases of a result: one for each object that it names, or for all objects of its kind.
func (r *kyvernoReader) result(i int, result *kyvernoResult) error {
	path := fmt.Sprintf("results[%d]", i)
	names := result.Resources
	if result.Resource != "" {
		names = append(slices.Clone(names), result.Resource)
	}
	played, of, skip := alone(r.policies, result.Policy)
	skip = cmp.Or(skip, r.skip)
	mistake := ""
	if of.Kind == "" {
		mistake = fmt.Sprintf("no file in `policies` has the policy '%s'", result.Policy)
	}
	want := cmp.Or(result.Result, result.Status)
	if !slices.Contains([]string{"pass", "fail", "skip", "warn", "error"}, want) {
		return fmt.Errorf("result: must be 'pass', 'fail', 'skip', 'warn' or 'error', not '%s'", want)
	}
	var patched []json.RawMessage
	if file := cmp.Or(result.PatchedResources, result.PatchedResource); file != "" && skip == "" {
		var err error
		if patched, err = r.objectsOf("patchedResources", []string{file}); err != nil {
			return err
		}
	}
	met := map[string]bool{}
	for _, object := range r.objects {
		n := nameOf(object)
		isMeant := len(names) == 0
		for _, name := range names {
			if isNamedBy(&n, name) && (result.Namespace == "" || result.Namespace == n.Metadata.Namespace) {
				met[name], isMeant = true, true
			}
		}
		if !isMeant || result.Kind != "" && result.Kind != n.Kind {
			continue
		}
		one := r.newCase(path, result.Policy+"/"+n.Kind+" "+n.Metadata.Name)
		one.Name, one.User, one.mistake = n.Metadata.Name, r.user, mistake
		one.skip = cmp.Or(skip, r.operation(result.Policy, n.Metadata.Name))
		one.Object = inNamespace(object)
		one.setting.Objects = slices.Concat(played, r.shared)
		one.verdict = &verdict{kind: of.Kind, policy: of.Metadata.Name, want: want,
			isScored: of.Metadata.Annotations["policies.kyverno.io/scored"] != "false"}
		if want == "pass" {
			one.Expect.Object = inNamespace(sameNamed(patched, &n))
		}
	}
	for _, name := range names {
		if !met[name] {
			one := r.newCase(path, result.Policy+"/"+strings.TrimSpace(result.Kind+" "+name))
			one.skip, one.mistake = skip,
				cmp.Or(mistake, fmt.Sprintf("no file in `resources` has the object '%s'", name))
		}
	}
	return nil
}

// operation returns why a case cannot be played whose values name another operation than CREATE; empty if it can.
func (r *kyvernoReader) operation(policy, object string) string {
	asked := r.values.GlobalValues["request.operation"]
	for _, p := range r.values.Policies {
		for _, o := range p.Resources {
			if value, has := o.Values["request.operation"]; has && p.Name == policy && o.Name == object {
				asked = value
			}
		}
	}
	if asked == nil || asked == "CREATE" {
		return ""
	}
	return fmt.Sprintf("the operation %v needs a stored object, which the test does not have", asked)
}

// isNamedBy reports whether a name of a result is that of an object: 'name', 'namespace/name', or its version, kind,
// namespace and name with commas between them.
func isNamedBy(n *named, name string) bool {
	full := strings.Join([]string{n.APIVersion, n.Kind, n.Metadata.Namespace, n.Metadata.Name}, ",")
	return name == n.Metadata.Name || name == n.Metadata.Namespace+"/"+n.Metadata.Name || name == full
}

// sameNamed returns the object with the kind and the name of another.
func sameNamed(objects []json.RawMessage, n *named) json.RawMessage {
	for _, o := range objects {
		if other := nameOf(o); other.Kind == n.Kind && other.Metadata.Name == n.Metadata.Name {
			return o
		}
	}
	return nil
}

// inNamespace returns an object with the namespace 'default' if it has none and objects of its kind are in one.
func inNamespace(object json.RawMessage) json.RawMessage {
	o := nameOf(object)
	isNamespaced := natives.Kinds[schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()].Namespaced
	if !isNamespaced || o.Metadata.Namespace != "" {
		return object
	}
	return edited(object, func(fields map[string]any) {
		if metadata, is := fields["metadata"].(map[string]any); is {
			metadata["namespace"] = "default"
		}
	})
}

// edited returns an object after an edit of its fields.
func edited(object json.RawMessage, edit func(map[string]any)) json.RawMessage {
	d := json.NewDecoder(strings.NewReader(string(object)))
	d.UseNumber()
	var fields map[string]any
	if d.Decode(&fields) != nil {
		return object
	}
	edit(fields)
	out, _ := json.Marshal(fields) // what was read from JSON can be written
	return out
}

// alone returns a policy with its bindings, as Kyverno plays it: the bindings deny whatever their actions are, and a
// policy without bindings is bound to everything. The policy has no kind if there is none.
func alone(all []json.RawMessage, name string) (played []json.RawMessage, of named, skip string) {
	bound := false
	for _, p := range all {
		n := nameOf(p)
		_ = json.Unmarshal(p, &n) // the name of the policy, if the object is a binding
		switch isBinding := strings.HasSuffix(n.Kind, "PolicyBinding"); {
		case isBinding && n.Spec.PolicyName == name:
			bound = true
			if n.Kind == "ValidatingAdmissionPolicyBinding" {
				p = edited(p, func(fields map[string]any) {
					if spec, is := fields["spec"].(map[string]any); is {
						spec["validationActions"] = []string{"Deny"}
					}
				})
			}
			played = append(played, p)
		case !isBinding && (n.Metadata.Name == name || n.Metadata.Namespace+"/"+n.Metadata.Name == name):
			of = n
			if n.Kind == "MutatingAdmissionPolicy" {
				p = edited(p, func(fields map[string]any) {
					if spec, is := fields["spec"].(map[string]any); is && spec["reinvocationPolicy"] == nil {
						spec["reinvocationPolicy"] = "Never"
					}
				})
			}
			played = append(played, p)
		}
	}
	switch of.Kind {
	case "":
		return nil, of, ""
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
	default:
		return nil, of, "the gateway does not serve the kind " + of.Kind
	}
	if bound {
		return played, of, ""
	}
	actions := ""
	if of.Kind == "ValidatingAdmissionPolicy" {
		actions = `,"validationActions":["Deny"]`
	}
	binding := `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"` + of.Kind +
		`Binding","metadata":{"name":"bound-to-everything"},"spec":{"policyName":` + jsonOf(name) + actions + `}}`
	return append(played, json.RawMessage(binding)), of, ""
}

// A verdict is what a suite expects of one policy.
type verdict struct {
	kind, policy, want string
	// isScored says that what the policy refuses counts as a failure, and not as a warning.
	isScored bool
}

// compare returns how the verdict of a policy differs from what is expected.
func (v *verdict) compare(e *environment, c *testCase) ([]string, error) {
	told, answer, err := e.explain(context.Background(), &c.Case, nil)
	if err != nil {
		return nil, err
	}
	if told.Answer.Code >= http.StatusBadRequest && len(told.Steps) == 0 {
		return []string{"is answered before policies are asked: " + string(answer.body)}, nil
	}
	got, why := "skip", ""
	for _, s := range told.Steps {
		for _, p := range s.Policies {
			if p.Kind == v.kind && p.Name == v.policy {
				got, why = v.outcome(&p), strings.Join(p.Messages, "; ")
			}
		}
	}
	if got == v.want {
		return nil, nil
	}
	problem := fmt.Sprintf("the policy's result is '%s', want '%s'", got, v.want)
	if why != "" {
		problem += ": " + why
	}
	return []string{problem}, nil
}

// outcome returns a verdict in Kyverno's words.
func (v *verdict) outcome(p *explanation.Policy) string {
	switch p.Verdict {
	case "Deny":
		if !v.isScored {
			return "warn"
		}
		return "fail"
	case "Error", "Ignore":
		return "error"
	case explanation.NoMatch, "Unchanged":
		return "skip"
	}
	return "pass"
}
