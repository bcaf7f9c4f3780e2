package policytest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// kyvernoTest is the test of Kyverno's command line.
type kyvernoTest struct {
	Policies  []string
	Resources []string
	Results   []struct {
		Policy, Kind, Result, PatchedResources string
		Resource                               string
		Resources                              []string
	}
}

// named has what names an object.
type named struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	Spec             struct{ PolicyName string }
}

// readKyverno reads a kyverno-test.yaml. Of its policies the ones that Kubernetes itself serves are played.
func readKyverno(s *suite, o *manifest.Object) error {
	var k kyvernoTest
	if err := json.Unmarshal(o.JSON, &k); err != nil {
		return err
	}
	dir := filepath.Dir(s.file)
	var policies, objects []json.RawMessage
	for _, file := range relative(dir, k.Policies) {
		more, err := objectsIn(file)
		if err != nil {
			return err
		}
		policies = append(policies, more...)
	}
	for _, file := range relative(dir, k.Resources) {
		more, err := objectsIn(file)
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	for i, result := range k.Results {
		names := result.Resources
		if result.Resource != "" {
			names = append(slices.Clone(names), result.Resource)
		}
		played, skip := alone(policies, result.Policy)
		for _, object := range objects {
			var n named
			if err := json.Unmarshal(object, &n); err != nil {
				return err
			}
			if len(names) > 0 && !slices.Contains(names, n.Metadata.Name) && !slices.Contains(names, n.Metadata.Namespace+"/"+n.Metadata.Name) || result.Kind != "" && result.Kind != n.Kind {
				continue
			}
			one := &testCase{file: s.file, line: o.Line(fmt.Sprintf("results[%d]", i)), id: result.Policy + "/" + n.Kind + " " + n.Metadata.Name, skip: skip}
			one.Name, one.Object, one.setting.Objects = n.Metadata.Name, object, played
			one.Expect.Decision = "Allowed"
			switch result.Result {
			case "fail":
				one.Expect.Decision = "Denied"
			case "skip":
				one.skip = "the test says so"
			}
			if result.PatchedResources != "" && skip == "" {
				patched, err := objectsIn(filepath.Join(dir, result.PatchedResources))
				if err != nil {
					return err
				}
				one.Expect.Object = sameNamed(patched, &n)
			}
			s.cases = append(s.cases, one)
		}
	}
	return nil
}

func sameNamed(objects []json.RawMessage, n *named) json.RawMessage {
	for _, o := range objects {
		var other named
		if json.Unmarshal(o, &other) == nil && other.Kind == n.Kind && other.Metadata.Name == n.Metadata.Name {
			return o
		}
	}
	return nil
}

// alone returns a policy with its bindings. A policy without bindings is bound to everything, as Kyverno plays it.
func alone(all []json.RawMessage, name string) (policies []json.RawMessage, skip string) {
	kind, bound := "", false
	for _, p := range all {
		var n named
		if json.Unmarshal(p, &n) != nil {
			continue
		}
		switch isBinding := n.Kind == "ValidatingAdmissionPolicyBinding" || n.Kind == "MutatingAdmissionPolicyBinding"; {
		case isBinding && n.Spec.PolicyName == name:
			bound = true
			policies = append(policies, p)
		case !isBinding && n.Metadata.Name == name:
			kind = n.Kind
			policies = append(policies, p)
		}
	}
	switch kind {
	case "":
		return nil, "no file has the policy " + name
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
	default:
		return nil, "the gateway does not serve the kind " + kind
	}
	if bound {
		return policies, ""
	}
	actions := ""
	if kind == "ValidatingAdmissionPolicy" {
		actions = `,"validationActions":["Deny"]`
	}
	binding := `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"` + kind + `Binding","metadata":{"name":"bound-to-everything"},"spec":{"policyName":"` + name + `"` + actions + `}}`
	return append(policies, json.RawMessage(binding)), ""
}
