package proxy

import (
	"strconv"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// Each method checks the type of its body in the same way, on described and other paths, for both
// kinds of backends (RES-7). Nothing that is judged reaches a backend with a type that it could
// read in another way.
type typedRequest struct{ method, path, media, body string }

func TestContentTypes(t *testing.T) {
	for _, dialect := range []string{"", "kubernetes"} {
		backend := newRecorder(t)
		backend.Reply = func(int, string, string) (string, bool) {
			const object = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w1","resourceVersion":"7"},"spec":{"size":5}}`
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"7\"\r\nContent-Length: " + strconv.Itoa(len(object)) + "\r\n\r\n" + object, true
		}
		words := []string{"policies=widgets"}
		if dialect != "" {
			words = append(words, dialect)
		}
		address := startGateway(t, gatewayFor(t, t.TempDir(), backend.Addr().String(), words))
		const items = "/apis/example.com/v1/namespaces/team-a/widgets"
		requests := []typedRequest{
			{"POST", items, "application/json", `{"metadata":{"name":"w1"},"spec":{"size":5}}`},
			{"PUT", items + "/w1", "application/json",
				`{"metadata":{"name":"w1","resourceVersion":"7"},"spec":{"size":5}}`},
			{"PATCH", items + "/w1", "application/merge-patch+json", `{"spec":{"size":6}}`},
			{"PATCH", items + "/w1", "application/json-patch+json", `[{"op":"add","path":"/spec/size","value":6}]`},
			{"DELETE", items + "/w1", "application/json", `{"gracePeriodSeconds":0}`},
		}
		for _, request := range requests {
			for parameters, good := range map[string]bool{
				"": true, ";charset=utf-8": true, "; charset=\"UTF-8\"": true,
				";charset=utf-16": false, ";,x": false, ";charset=\"utf-8": false, ";charset=utf-8\"": false,
				";charset=utf-8;charset=utf-16": false,
				";":                             false, ";profile=x": false, ", text/plain": false,
			} {
				value := request.media + parameters
				backend.Take()
				nc, br := dial(t, address)
				send(t, nc, request.method+" "+request.path+" HTTP/1.1\r\nHost: gw\r\nContent-Type: "+value+
					"\r\nContent-Length: "+strconv.Itoa(len(request.body))+"\r\n\r\n"+request.body)
				a, _ := readAnswer(t, br, false)
				_ = nc.Close()
				got := backend.Take()
				refused := a.StatusCode == 415
				if refused == good || refused && got != "" {
					t.Errorf("%s%s %s as %q is answered %d %s; the backend got\n%s", dialect, request.method,
						request.path, value, a.StatusCode, a.Content, got)
				}
			}
		}
	}
}

const aboutDeployments = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: deployments}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments, deployments/scale]}]
  validations: [{expression: "object.metadata.name == 'web'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deployments}
spec: {policyName: deployments, validationActions: [Deny]}
`

// A body without a Content-Type is JSON to an API server, of every method but PATCH, and is named
// so when it is sent on: client-go's client of scales sends none. To a plain API it is refused.
func TestBodiesWithoutAType(t *testing.T) {
	const deployments, scale = "/apis/apps/v1/namespaces/team-a/deployments", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":3}}`
	const widgets, widget = "/apis/example.com/v1/namespaces/team-a/widgets",
		`{"metadata":{"name":"w1","resourceVersion":"7"},"spec":{"size":5}}`
	for _, dialect := range []string{"", "kubernetes"} {
		backend := newRecorder(t)
		backend.Reply = func(int, string, string) (string, bool) {
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"7\"\r\nContent-Length: " + strconv.Itoa(len(widget)) + "\r\n\r\n" + widget, true
		}
		words := []string{"policies=widgets"}
		if dialect != "" {
			words = append(words, dialect)
		}
		address := startGateway(t, gatewayFor(t, policiestest.Write(t, aboutDeployments), backend.Addr().String(),
			words))
		requests := []typedRequest{
			{"POST", widgets, "", widget}, {"PUT", widgets + "/w1", "", widget},
			{"DELETE", widgets + "/w1", "", `{"gracePeriodSeconds":0}`},
			{"PATCH", widgets + "/w1", "", `{"spec":{"size":6}}`},
		}
		if dialect != "" { // and of a resource that a policy matches
			requests = append(requests, []typedRequest{
				{"PUT", deployments + "/web/scale", "", scale},
				{"POST", deployments, "", `{"metadata":{"name":"web"}}`},
				{"PATCH", deployments + "/web", "", `{"spec":{}}`},
				{"PUT", deployments + "/web/scale", "text/plain", scale},
			}...)
		}
		for _, r := range requests {
			for _, line := range []string{"", "Content-Type:\r\n"} {
				if r.media != "" {
					line = "Content-Type: " + r.media + "\r\n"
				}
				backend.Take()
				nc, br := dial(t, address)
				send(t, nc, r.method+" "+r.path+" HTTP/1.1\r\nHost: gw\r\n"+line+"Content-Length: "+
					strconv.Itoa(len(r.body))+"\r\n\r\n"+r.body)
				a, _ := readAnswer(t, br, false)
				_ = nc.Close()
				got := backend.Take()
				isRead := dialect != "" && r.method != "PATCH" && r.media == ""
				if isRead && (a.StatusCode != 200 || !strings.Contains(got, r.method+" ") ||
					strings.Count(got, "Content-Type: application/json") != 1) {
					t.Errorf("%s %s with %q is answered %d %s; the backend got\n%s", r.method, r.path, line,
						a.StatusCode, a.Content, got)
				}
				if !isRead && (a.StatusCode != 415 || got != "") {
					t.Errorf("%s: %s %s with %q is answered %d %s; the backend got\n%s", dialect, r.method, r.path,
						line, a.StatusCode, a.Content, got)
				}
			}
		}
	}
}
