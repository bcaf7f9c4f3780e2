package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// storedPolicies read the stored Deployment in every way: its replicas, 1, and its uid, u1, must
// stay hidden from clients that may not write it.
var storedPolicies = policy("stored-replicas",
	rule("UPDATE, DELETE", "deployments, deployments/status, deployments/scale")+
		"  matchConditions: [{name: judged, expression: \"request.userInfo.username != 'system:nobody' && oldObject.spec.replicas >= 0\"}]\n"+
		"  validations: [{expression: 'oldObject.spec.replicas > LEAST', messageExpression: \"'stored ' + string(oldObject.spec.replicas)\"}]", deny) +
	policy("stored-warning", rule("UPDATE, DELETE", "deployments")+
		"  validations: [{expression: 'oldObject.spec.replicas > 5', messageExpression: \"'stored ' + oldObject.metadata.uid\"}]", "validationActions: [Warn, Audit]") +
	policy("stored-error", "  failurePolicy: FAILURE\n"+rule("DELETE", "deployments")+
		"  validations: [{expression: 'oldObject.spec.missing[oldObject.metadata.uid] == 1', message: stored}]", deny)

func storedPolicy(least, failure string) string {
	return strings.NewReplacer("LEAST", least, "FAILURE", failure).Replace(storedPolicies)
}

const (
	putOne   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1}}`
	putOther = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","uid":"u1","resourceVersion":"6"},"spec":{"replicas":1}}`
)

// TestStoredIsReadByTheGateway: who may write an object and may not read it passes: the stored object that policies
// need is read by the gateway's own account, and the server authorizes the write itself.
func TestStoredIsReadByTheGateway(t *testing.T) {
	const asEraser = "Authorization: Bearer eraser"
	a := newAuthority(t)
	url := guarded(t, a, storedPolicy("0", "Ignore"), "OWN", "")
	own := "GET " + inTeamA + "/web by gateways-own\n"
	for _, c := range []struct{ name, method, path, contentType, body, asked string }{
		{"an update", "PUT", "/web", "application/json", tooManyPut, own + "PUT " + inTeamA + "/web by eraser"},
		{"a deletion", "DELETE", "/web", "", "", own + "DELETE " + inTeamA + "/web by eraser"},
		{"a merge patch", "PATCH", "/web", "application/merge-patch+json", `{"spec":{"replicas":2}}`,
			"GET /version by eraser\nPATCH " + inTeamA + "/web?dryRun=All by eraser\n" + own + "PATCH " + inTeamA +
				"/web by eraser"},
		{"an apply", "PATCH", "/web?fieldManager=m", "application/apply-patch+yaml",
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":2}}`,
			"PATCH " + inTeamA + "/web?fieldManager=m&dryRun=All by eraser\n" + own + "PATCH " + inTeamA +
				"/web?fieldManager=m by eraser"},
		{"a deletion of all", "DELETE", "?labelSelector=a%3Db", "", "",
			"DELETE " + inTeamA + "?fieldSelector=metadata.name%3Dadmission-gateway.io.nobody&labelSelector=a%3Db by eraser\n" +
				"GET " + inTeamA + "?labelSelector=a%3Db by gateways-own\n" +
				"DELETE " + inTeamA + "?fieldSelector=metadata.name%3Dweb&labelSelector=a%3Db by eraser"},
	} {
		a.take()
		got := said(t, c.method, url+inTeamA+c.path, c.contentType, c.body, asEraser)
		if asked := a.take(); !strings.HasPrefix(got, "200 ") || asked != c.asked {
			t.Errorf("%s: got %s\nasked\n%s\nwant\n%s", c.name, got, asked, c.asked)
		}
	}
}

// TestStoredIsNotTold: a client that may not write the object, or whose permission cannot be
// determined, learns nothing that the gateway's own account has read: each request of a kind has
// one answer, whatever is stored.
func TestStoredIsNotTold(t *testing.T) {
	const identified = "identity: {anonymous: Allow, authenticators: [{requestHeader: {addresses: [127.0.0.0/8]}}]}\n"
	for _, c := range []struct {
		name, upstream, lines string
		as                    []string
		failing               int
		want                  string
	}{
		{"who may not", "OWN", "", []string{"Authorization: Bearer alice"}, 0, `403 deployments.apps NAMEis forbidden: User "alice" cannot VERB resource "deployments" in API group "apps" in the namespace "team-a": no role`},
		{"nobody", "OWN", "", nil, 0, `403 deployments.apps NAMEis forbidden: User "system:anonymous" cannot VERB resource "deployments" in API group "apps" in the namespace "team-a": no role`},
		{"who may not and of whom the gateway tells", "OWN, credentials: Impersonate", identified,
			[]string{"X-Remote-User: alice"}, 0,
			`403 deployments.apps NAMEis forbidden: User "alice" cannot VERB resource "deployments" in API group "apps" in the namespace "team-a": no role`},
		{"a server that does not say", "OWN", "", []string{"Authorization: Bearer alice"}, 500,
			"503 the backend does not say now whether the client may do what it asks for, on which the answer depends"},
		{"a server that lets no client ask", "OWN", "", []string{"Authorization: Bearer alice"}, 403,
			`403 deployments.apps NAMEis forbidden: the backend does not let the client ask by a SelfSubjectAccessReview whether it may do what it asks for, on which the answer depends`},
		{"an account that may not ask", "OWN, credentials: Impersonate", identified, []string{"X-Remote-User: alice"},
			403,
			`403 deployments.apps NAMEis forbidden: the gateway's own account lacks a right at the upstream 'main', so that policies cannot judge the request: ` +
				`add {apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"]} to its role`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAuthority(t)
			a.set(func() { a.failing = c.failing })
			url := guarded(t, a, storedPolicy("1", "Fail"), c.upstream, c.lines)
			for _, r := range []struct{ what, method, name, body, verb string }{
				{"a denied deletion", "DELETE", "web", "", "delete"},
				{"a deletion of nothing", "DELETE", "none", "", "delete"},
				{"a denied update", "PUT", "web", putOne, "update"},
				{"an update of another version", "PUT", "web", putOther, "update"},
				{"a deletion of another version", "DELETE", "web", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"6"}}`, "delete"},
				{"a deletion of what cannot be read", "DELETE", "odd", "", "delete"},
			} {
				a.set(func() { a.objects[inTeamA+"/odd"] = "[1]" })
				got := said(t, r.method, url+inTeamA+"/"+r.name, "application/json", r.body, c.as...)
				want := strings.NewReplacer("NAME", fmt.Sprintf("%q ", r.name), "VERB", r.verb).Replace(c.want)
				if got != want {
					t.Errorf("%s:\ngot  %s\nwant %s", r.what, got, want)
				}
			}
		})
	}
}

// TestAccountLacksARight: a request that depends on what the gateway's own account may not read is refused with the
// rule that the account lacks, and the log has it too. Who may not write gets the server's own answer.
func TestAccountLacksARight(t *testing.T) {
	const lacks = `the gateway's own account 'system:serviceaccount:gateway:gateway' lacks a right at the upstream 'main', so that policies cannot judge the request: add `
	var log syncBuffer
	a := newAuthority(t)
	a.set(func() { a.refused = 403 })
	url := guardedLogging(t, a, storedPolicy("0", "Ignore"), "OWN", "", slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct{ method, path, body, as, want string }{
		{"DELETE", "/web", "", "eraser", `403 deployments.apps "web" is forbidden: ` + lacks +
			`{apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"]} to its role`},
		{"PUT", "/web", putOne, "eraser", `403 deployments.apps "web" is forbidden: ` + lacks +
			`{apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"]} to its role`},
		{"PUT", "/web/status", putOne, "eraser", `403 deployments.apps "web" is forbidden: ` + lacks +
			`{apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"]} to its role`},
		{"PUT", "/web/scale", scaleTo, "eraser", `403 deployments.apps "web" is forbidden: ` + lacks + `{apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["get"]} to its role`},
		{"DELETE", "", "", "eraser", `403 deployments.apps is forbidden: ` + lacks +
			`{apiGroups: ["apps"], resources: ["deployments"], verbs: ["list"]} to its role`},
		{"DELETE", "/web", "", "alice", `403 deployments.apps "web" is forbidden: User "alice" cannot delete resource "deployments" in API group "apps" in the namespace "team-a": no role`},
	} {
		got := said(t, c.method, url+inTeamA+c.path, "application/json", c.body, "Authorization: Bearer "+c.as)
		if got != c.want {
			t.Errorf("%s %s by %s:\ngot  %s\nwant %s", c.method, c.path, c.as, got, c.want)
		}
	}
	for _, rule := range []string{"deployments", "deployments/scale"} {
		if want := `rule="{apiGroups: [\"apps\"], resources: [\"` + rule +
			`\"], verbs: [\"get\"]}"`; strings.Count(log.String(), want) != 1 {
			t.Errorf("the log does not have %s once:\n%s", want, &log)
		}
	}
	a.set(func() { a.refused = 401 })
	if got, want := said(t, "DELETE", url+inTeamA+"/web", "", "", "Authorization: Bearer eraser"),
		"503 the gateway has no account now by which to ask the backend"; got != want {
		t.Errorf("an account that the backend does not know: %s", got)
	}
}

// TestStoredIsNotExplained: an explanation shows no stored object to a client that may not get it, and the same to any
// other as before.
func TestStoredIsNotExplained(t *testing.T) {
	for _, values := range []string{"Digests", "Shown"} {
		a := newAuthority(t)
		url := guarded(t, a, storedPolicy("1", "Fail"), "OWN, credentials: Impersonate",
			"identity: {authenticators: [{requestHeader: {addresses: [127.0.0.0/8]}}]}\n"+
				"telemetry: {explanations: {users: [eraser, boss], values: "+values+"}}\n")
		address := strings.TrimPrefix(url, "http://")
		for _, c := range []struct {
			method, target, body, as, decision string
			shows                              bool
		}{
			{"DELETE", inTeamA + "/web", "", "eraser", "Unknown", false},
			{"PUT", inTeamA + "/web", putOne, "eraser", "Unknown", false},
			{"DELETE", inTeamA, "", "eraser", "Unknown", false},
			{"DELETE", inTeamA + "/web", "", "boss", "Refused", true},
		} {
			text := string(exchangeRaw(t, address, fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: a\r\nX-Remote-User: %s\r\nX-Admission-Explain: json\r\n"+
				"Connection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", c.method, c.target, c.as, len(c.body), c.body)))
			if !strings.Contains(text, `"decision": "`+c.decision+`"`) {
				t.Errorf("%s, %s %s by %s: not %s:\n%s", values, c.method, c.target, c.as, c.decision, text)
			}
			if got := strings.Contains(text, "stored 1"); got != c.shows || !c.shows && strings.Contains(text, "u1") {
				t.Errorf("%s, %s %s by %s: shows the stored object: %t:\n%s", values, c.method, c.target, c.as, got,
					text)
			}
		}
		if asked := a.take(); strings.Contains(asked, "GET "+inTeamA+"/web by gateways-own") {
			t.Errorf("the gateway's own account has read what is shown:\n%s", asked)
		}
	}
}

// TestDeniedCollectionIsRecorded: the Event about a collection whose deletion is denied has the kind of its objects,
// which are gone by then.
func TestDeniedCollectionIsRecorded(t *testing.T) {
	a := newAuthority(t)
	url := guarded(t, a, storedPolicy("1", "Ignore"), "OWN, events: Record", "")
	got := said(t, "DELETE", url+inTeamA, "", "", "Authorization: Bearer boss")
	if !strings.HasPrefix(got, "422 ") || !strings.Contains(got, "stored 1") {
		t.Errorf("got %s", got)
	}
	testutil.Eventually(t, "the Event is recorded", func() bool {
		return strings.Contains(a.take(), "POST /apis/events.k8s.io/v1/namespaces/team-a/events by gateways-own")
	})
}

// TestOwnReadIsNamed: logs and traces of the server name what the gateway's own account reads by the request that it is
// for.
func TestOwnReadIsNamed(t *testing.T) {
	const id, parent = "of-the-client", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	a := newAuthority(t)
	url := guarded(t, a, storedPolicy("0", "Ignore"), "OWN", "")
	said(t, "DELETE", url+inTeamA+"/web", "", "", "Authorization: Bearer eraser", "X-Request-Id: "+id,
		"Traceparent: "+parent)
	a.set(func() {
		if a.named != id+" "+parent {
			t.Errorf("it is named %q", a.named)
		}
	})
	said(t, "DELETE", url+inTeamA+"/web", "", "", "Authorization: Bearer eraser")
	a.set(func() {
		if len(strings.TrimSpace(a.named)) < 16 {
			t.Errorf("without an id of the client's it is named %q", a.named)
		}
	})
}

// TestStoredIsNotWarnedOf: a client that may not write an object learns nothing of it from warnings
// either, if its own deadline ends the request before its permission is known.
func TestStoredIsNotWarnedOf(t *testing.T) {
	a := newAuthority(t)
	released := make(chan struct{})
	a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			select {
			case <-released:
			case <-time.After(testutil.Patience):
			}
		}
		a.ServeHTTP(w, r)
	})
	defer close(released)
	url := guarded(t, a, storedPolicy("0", "Ignore"), "OWN", "")
	got := said(t, "PUT", url+inTeamA+"/web?timeout=300ms", "application/json", tooManyPut,
		"Authorization: Bearer alice")
	if strings.Contains(got, "stored") || !strings.HasPrefix(got, "50") {
		t.Errorf("got %s", got)
	}
}

// TestStoredIsNotToldByWhoRefuses: a client that may not write an object gets one answer, whether
// policies would let the write pass, deny it, or find no object: the headers of the server's own
// refusal reveal nothing either.
func TestStoredIsNotToldByWhoRefuses(t *testing.T) {
	const own = "X-Kubernetes-Pf-Flowschema-Uid"
	for _, as := range []string{"alice", "stranger"} {
		a := newAuthority(t)
		a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(own, "f")
			a.ServeHTTP(w, r)
		})
		a.set(func() { a.objects[inTeamA+"/other"] = deploymentText })
		url := guarded(t, a, policy("replicas", rule("DELETE", "deployments")+
			"  validations: [{expression: 'request.name == \"web\" && oldObject.spec.replicas > 0', message: stored}]", deny), "OWN", "")
		var answers []string
		for _, name := range []string{"web", "none", "other"} {
			r, err := http.NewRequest("DELETE", url+inTeamA+"/"+name, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+as)
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			answer.Header.Del("Date")
			answer.Header.Del("X-Request-Id")
			answer.Header.Del("Content-Length")
			answers = append(answers,
				fmt.Sprint(answer.StatusCode, answer.Header, strings.ReplaceAll(string(body), name, "NAME")))
		}
		if answers[0] != answers[1] || answers[0] != answers[2] {
			t.Errorf("%s: what passes is answered\n%s\nwhat is not there\n%s\nwhat is denied\n%s", as, answers[0],
				answers[1], answers[2])
		}
	}
}

// TestStoredIsNotWarnedOfWhenBusy: a server that has too much to do says so before it asks what the client may do.
func TestStoredIsNotWarnedOfWhenBusy(t *testing.T) {
	a := newAuthority(t)
	a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"busy","code":429}`)
			return
		}
		a.ServeHTTP(w, r)
	})
	url := guarded(t, a, storedPolicy("0", "Ignore"), "OWN", "")
	if got := said(t, "PUT", url+inTeamA+"/web", "application/json", tooManyPut,
		"Authorization: Bearer alice"); got != "429 busy" {
		t.Errorf("got %s", got)
	}
}

// TestShardOfACollection: if a request names one shard of a collection, that shard alone is read.
func TestShardOfACollection(t *testing.T) {
	a := newAuthority(t)
	url := guarded(t, a, storedPolicy("0", "Ignore"), "OWN", "")
	got := said(t, "DELETE", url+inTeamA+"?shardSelector=s", "", "", "Authorization: Bearer eraser")
	if asked := a.take(); !strings.HasPrefix(got, "200") ||
		!strings.Contains(asked, "GET "+inTeamA+"?shardSelector=s by gateways-own") {
		t.Errorf("got %s\nasked\n%s", got, asked)
	}
}
