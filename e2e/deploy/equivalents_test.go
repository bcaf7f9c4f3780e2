package deploy

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// told is a policy that denies what its rules name, in any version, and says what it sees of it, if a label asks for
// that.
func told(name, group, version, resource, says string) string {
	return `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules: [{apiGroups: ["` + group + `"], apiVersions: [` + version + `], operations: [CREATE, UPDATE, DELETE], resources: [` + resource + `]}]
  matchConditions: [{name: user, expression: "request.userInfo.username == 'root'"}, {name: told, expression: "(object == null ? oldObject : object).metadata.?labels.?told == optional.of('` + name + `')"}]
  variables: [{name: of, expression: "object == null ? oldObject : object"}]
  validations:
  - expression: "false"
    messageExpression: |
      'says ' + request.kind.version + ' ' + request.requestKind.version + ' ' + request.resource.version + ' ' + request.resource.group + ' ' + variables.of.apiVersion + ' ' + variables.of.kind + ' ' + ` + says + `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec: {policyName: ` + name + `, validationActions: [Deny]}
---`
}

// widening is a policy that changes autoscalers in autoscaling/v2, in whatever version they are sent.
const widening = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: widening}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [autoscaling], apiVersions: [v2], operations: [CREATE], resources: [horizontalpodautoscalers]}]}
  matchConditions: [{name: told, expression: "object.metadata.?labels.?told == optional.of('widening') && object.spec.metrics.size() == 2"}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{maxReplicas: 5}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: widening}
spec: {policyName: widening}
`

var said = regexp.MustCompile(`says [^"\\]*`)

// A policy about one version sees requests in another as kube-apiserver shows them: the same policies deny each request
// in the server itself, and in a gateway before it, in the same words.
func TestEquivalentVersions(t *testing.T) {
	c := startCluster(t, "--runtime-config=api/all=true")
	metrics := `variables.of.spec.metrics.map(m, m.type + ':' + string(m.?resource.?target.?averageUtilization.orValue(0)) + string(m.?external.?metric.?name.orValue(''))).join(',') ` +
		`+ ' ' + string(variables.of.?metadata.?annotations.orValue({}).size()) + ' ' + string(variables.of.spec.?behavior.?scaleUp.?stabilizationWindowSeconds.orValue(0))`
	policies := told("newer", "autoscaling", "v2", "horizontalpodautoscalers", metrics) +
		told("older", "autoscaling", "v1", "horizontalpodautoscalers", `string(variables.of.spec.?targetCPUUtilizationPercentage.orValue(0)) + ' ' + string(variables.of.?metadata.?annotations[?'autoscaling.alpha.kubernetes.io/metrics'].orValue('none')).replace('\"', '')`) +
		told("claims", "resource.k8s.io", "v1", "resourceclaims", `variables.of.spec.devices.requests.map(r, r.name + ':' + string(r.?exactly.?deviceClassName.orValue('-'))).join(',')`) +
		told("olderclaims", "resource.k8s.io", "v1beta1", "resourceclaims", `variables.of.spec.devices.requests.map(r, r.name + ':' + string(r.?deviceClassName.orValue('-'))).join(',')`) +
		told("classes", "resource.k8s.io", "v1beta1", "deviceclasses",
			`variables.of.spec.selectors[0].cel.expression`) +
		told("events", "events.k8s.io", "v1", "events", `string(variables.of.?note.orValue('-')) + ' ' + string(variables.of.?regarding.?name.orValue('-')) + ' ' + string(variables.of.?deprecatedCount.orValue(0))`) +
		told("coreevents", "", "v1", "events", `string(variables.of.?message.orValue('-')) + ' ' + string(variables.of.?involvedObject.?name.orValue('-')) + ' ' + string(variables.of.?count.orValue(0))`)
	const autoscalers, claims, events = "/horizontalpodautoscalers", "/resourceclaims", "/events"
	autoscaling := func(version string) string {
		return "/apis/autoscaling/" + version + "/namespaces/default" + autoscalers
	}
	resources := func(version string) string {
		return "/apis/resource.k8s.io/" + version + "/namespaces/default" + claims
	}
	const core, modern = "/api/v1/namespaces/default" + events, "/apis/events.k8s.io/v1/namespaces/default" + events
	older := func(name, label string) string {
		return `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"` + name + `","labels":{"told":"` + label + `"},"annotations":{"autoscaling.alpha.kubernetes.io/metrics":` +
			`"[{\"type\":\"External\",\"external\":{\"metricName\":\"q\",\"targetValue\":\"30\"}}]","autoscaling.alpha.kubernetes.io/behavior":"{\"ScaleUp\":{\"StabilizationWindowSeconds\":7,\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":4,\"PeriodSeconds\":60}]}}"}},` +
			`"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"maxReplicas":3,"targetCPUUtilizationPercentage":40}}`
	}
	newer := func(name, label string) string {
		return `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"` + name + `","labels":{"told":"` + label + `"}},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"maxReplicas":3,` +
			`"behavior":{"scaleUp":{"stabilizationWindowSeconds":9}},"metrics":[{"type":"External","external":{"metric":{"name":"q"},"target":{"type":"Value","value":"30"}}},{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}}]}}`
	}
	claim := func(version, name, label string) string {
		request := `{"name":"r","deviceClassName":"c"}`
		if version != "v1beta1" {
			request = `{"name":"r","exactly":{"deviceClassName":"c"}}`
		}
		return `{"apiVersion":"resource.k8s.io/` + version + `","kind":"ResourceClaim","metadata":{"name":"` + name +
			`","labels":{"told":"` + label + `"}},"spec":{"devices":{"requests":[` + request + `]}}}`
	}
	patch := func(by string) string { return `{"metadata":{"labels":{"told":"` + by + `"}}}` }
	var requests []request
	add := func(method, path, body string) { requests = append(requests, request{method, path, body}) }
	for _, by := range []string{"newer", "older"} {
		for _, version := range []string{"v1", "v2"} {
			add("PATCH", autoscaling(version)+"/mild", patch(by))
			add("DELETE", autoscaling(version)+"/strong-"+by, "")
		}
		add("POST", autoscaling("v1"), older("new", by))
		add("POST", autoscaling("v2"), newer("new", by))
		add("PUT", autoscaling("v1")+"/mild", older("mild", by))
		add("PUT", autoscaling("v2")+"/mild", newer("mild", by))
	}
	for _, version := range []string{"v1", "v1beta1", "v1beta2"} {
		for _, by := range []string{"claims", "olderclaims"} {
			add("POST", resources(version), claim(version, "new", by))
			add("PATCH", resources(version)+"/mild", patch(by))
		}
		add("POST", "/apis/resource.k8s.io/"+version+"/deviceclasses", `{"apiVersion":"resource.k8s.io/`+version+`","kind":"DeviceClass","metadata":{"name":"new","labels":{"told":"classes"}},"spec":{"selectors":[{"cel":{"expression":"true"}}]}}`)
	}
	for _, by := range []string{"events", "coreevents"} {
		add("POST", core, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"new","namespace":"default","labels":{"told":"`+by+`"}},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"message":"m","count":2,"type":"Normal","reason":"R"}`)
		add("POST", modern, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"new","namespace":"default","labels":{"told":"`+by+`"}},"regarding":{"kind":"Pod","name":"p","namespace":"default"},"note":"m",`+
			`"eventTime":"2026-01-01T00:00:00.000000Z","type":"Normal","reason":"R","action":"A","reportingController":"c","reportingInstance":"i"}`)
	}

	for path, body := range map[string]string{autoscaling("v2"): newer("mild", "b"),
		resources("v1"): claim("v1", "mild", "b")} {
		if code, answer := ask(t, "of-root", "POST", c.url+path, "application/json", body); code != http.StatusCreated {
			t.Fatalf("answered %d %s", code, answer)
		}
	}
	for _, by := range []string{"newer", "older"} {
		if code, answer := ask(t, "of-root", "POST", c.url+autoscaling("v1"), "application/json",
			older("strong-"+by, by)); code != http.StatusCreated {
			t.Fatalf("answered %d %s", code, answer)
		}
	}
	through := c.startBefore(t, strings.ReplaceAll(policies, "request.userInfo.username == 'root'", "true")+widening)
	if code, text := ask(t, "of-root", "POST", through+autoscaling("v1"), "application/json",
		older("wide", "widening")); code != http.StatusCreated ||
		!strings.Contains(text, `"maxReplicas":5`) || !strings.Contains(text, `"targetCPUUtilizationPercentage":40`) ||
		!strings.Contains(text, `\"metricName\":\"q\"`) {
		t.Errorf("what a policy changes in another version is answered %d %s", code, text)
	}
	answer := func(url string, r request) string {
		contentType := map[string]string{"POST": "application/json", "PUT": "application/json",
			"PATCH": "application/merge-patch+json"}[r.method]
		code, text := ask(t, "of-root", r.method, url+r.path, contentType, r.body)
		return fmt.Sprint(code, " ", strings.Join(said.FindAllString(text, -1), "; "))
	}
	got := make([]string, len(requests))
	for i, r := range requests {
		got[i] = answer(through, r)
	}
	c.must(t, servedPolicies(t, policies), "create", "-f", "-")
	eventually(t, "every policy is in force", func() bool {
		for _, r := range requests {
			if want := answer(c.url, dry(r)); !strings.HasPrefix(want, "422 says ") {
				return false
			}
		}
		return true
	})
	for i, r := range requests {
		if want := answer(c.url, r); got[i] != want || !strings.HasPrefix(want, "422 says ") {
			t.Errorf("%s %s:\nthrough the gateway %s\nby the server       %s", r.method, r.path, got[i], want)
		}
	}
}

type request struct{ method, path, body string }

// dry is a request that changes nothing.
func dry(r request) request {
	r.path += "?dryRun=All"
	return r
}
