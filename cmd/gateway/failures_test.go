package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// failureProofs has a proof of each row of "When something fails" of docs/operations/failures.md, by the fault of the
// row as far as it tells it from the others. A proof is the name of a test of another folder that makes the fault, or a
// scenario of proxy/testdata/way, or a test of this file.
var failureProofs = map[string][]string{
	"policy files have errors when the process starts": {"cmd/gateway:TestFilesWithErrorsAtStart",
		"cmd/gateway:TestLastGoodStart"},
	"policy files have errors later, or are gone": {"cmd/gateway:TestFilesWithErrorsLater",
		"proxy:TestFailMatrixReload", "policies:TestReloadOfNothing"},
	"a policy expression fails, or spends its budget": {"proxy:TestFailMatrix"},
	"the kind of a policy's parameters is neither":    {"admission/vap:TestMissingParamKind", "param-kind-missing.txtar"},
	"a parameter, a namespace or a state": {"proxy:TestFailMatrix",
		"proxy:TestParamsWhileTheBackendFails", "proxy:TestNamespaceWhileTheBackendFails",
		"proxy:TestStorageClassesSkipped", "namespace-missing.txtar"},
	"the server does not say in 5 seconds": {"proxy:TestUntold", "proxy:TestUntoldInTime",
		"proxy:TestUntoldByServiceAccount", "policy-untold.txtar"},
	"a bundle that a policy needs was never loaded": {"policies/bundles:TestStaleness", "cmd/gateway:TestBundles"},
	"a connection on which the gateway watches a cluster": {"internal/cluster:TestDeadConnection",
		"proxy:TestDeadConnectionOfState", "policies/bundles:TestDeadConnection"},
	"a connection to an API server that carries": {"internal/upstream:TestDeadWatch", "proxy:TestDeadWatchOfClient"},
	"a bundle server is down or slow": {"policies/bundles:TestUnreachable",
		"policies/bundles:TestAnswers", "cmd/gateway:TestBundles"},
	"a rate limit's condition cannot be evaluated":     {"cmd/gateway:TestLimitsThatCannotBeEvaluated"},
	"a rate limit's cost, or key, cannot be evaluated": {"cmd/gateway:TestLimitsThatCannotBeEvaluated"},
	"Redis does not answer in time": {"internal/ratelimit/shared:TestRedisStops",
		"internal/ratelimit/shared:TestFull", "internal/ratelimit:TestFallback"},
	"an issuer of JWTs, or the API server": {"internal/identity:TestJWTIssuerDown", "internal/identity:TestFailures"},
	"the backend cannot be reached, or its circuit": {"proxy:TestBackendUnreachable",
		"internal/upstream:TestCircuitOpenIsAnswered"},
	"all connections to the backend are in use": {"cmd/gateway:TestNoConnectionIsFree",
		"internal/upstream:TestWaiting"},
	"the backend's certificate is signed by no known": {"proxy:TestUnknownBackend"},
	"the backend is too slow, or the client's":        {"proxy:TestBackendFaults", "proxy:TestClientTimeout"},
	"the backend's answer is not strict HTTP":         {"proxy:TestBackendFaults"},
	"the backend sends bytes behind the end of an answer": {"internal/upstream:TestSurplusAtReuse",
		"internal/upstream:TestSurplusBehindRequest", "internal/upstream:TestSurplusInTLS"},
	"the answer announces a body that it must not have": {"internal/upstream:TestAnswers",
		"internal/upstream:TestSurplusInTLS"},
	"it is not known yet [what an API server serves]": {"proxy:TestPendingDiscovery"},
	"an API server cannot be asked for a resource":    {"proxy:TestKindsOfTheServer"},
	"an upstream of the dialect `Kubernetes`": {"proxy:TestOrdinaryAPIGetsNoDryRun",
		"proxy:TestProofOfNobody", "kubernetes-unproved.txtar"},
	"a plain backend's answer that the gateway":       {"proxy:TestLargeObjectsFilled", "reads-refused.txtar"},
	"a plain backend's answer to a GET has no object": {"proxy:TestStoredPlaces"},
	"the document does not say where the answer":      {"proxy:TestStoredShapes"},
	"the stored object that a decision depends on":    {"proxy:TestFailMatrix", "proxy:TestAccountLacksARight"},
	"Redis, which keeps the locks of objects": {"proxy:TestWritesWithoutSharedLocks",
		"internal/ratelimit/shared:TestLockWithoutRedis"},
	"a write lost its lock in Redis before it was sent": {"proxy:TestWritesWithoutSharedLocks",
		"internal/ratelimit/shared:TestLockLost"},
	"a write to a backend that compares no versions": {"proxy:TestLateWriteKeepsItsLock"},
	"more than 100 writes wait for one object": {"cmd/gateway:TestManyWritesOfOneObject",
		"internal/storage:TestCrowdedLock"},
	"a plain backend that keeps versions":              {"proxy:TestFaultsOfWrites"},
	"another writer comes between judgement and write": {"proxy:TestWriteRacedAgainAndAgain", "update-raced.txtar"},
	"memory for requests (`limits.bodiesInFlightBytes`)": {"proxy:TestFaultsOfMemory",
		"internal/server:TestBodyBudget", "internal/server:TestTooManyConnections"},
	"requests in flight, or connections, take as much": {"internal/server:TestRequestsBeyondMemory",
		"internal/server:TestShares", "cmd/gateway:TestFloods"},
	"a client resets streams of HTTP/2": {"internal/server:TestResetsAcrossConnections",
		"internal/server:TestResetsBehindProxy", "cmd/gateway:TestFloods"},
	"the backend answers the handshake of a WebSocket": {"proxy:TestExtendedConnect"},
	"file descriptors, or the kernel's memory": {"cmd/gateway:TestDescriptorsOfProcess",
		"cmd/gateway:TestDescriptorsOfBackends", "internal/descriptors:TestAccept"},
	"a listener's socket fails for good":           {"cmd/gateway:TestListenerFails"},
	"clients of the admin listener hold all":       {"internal/admin:TestHealthHasAPlace"},
	"too many requests wait to do heavy work":      {"proxy:TestFaultsOfMemory", "internal/memory:TestGate"},
	"the client leaves before its answer":          {"proxy:TestClientsThatLeave", "proxy:TestNotSentForClientsThatLeave"},
	"the client's `?timeout=` passes":              {"internal/memory:TestGateEndsWithTheRequest"},
	"the deadline of a call of gRPC passes":        {"proxy:TestCallDeadlines"},
	"no memory to complete the answer to a write":  {"proxy:TestNoMemoryForTheAnswerOfAWrite"},
	"no memory to complete an object in an answer": {"proxy:TestLargeObjectsFilled"},
	"some server could read the path as one":       {"proxy:TestAmbiguousPaths"},
	"a request is refused while its body is still coming": {"proxy:TestRefusedWhileSending",
		"internal/server:TestLingerBounds", "internal/server:TestLingerPace"},
	"too many requests at a time, the queue full": {"proxy:TestTurnedAwayForLonger", "proxy:TestWaitIsBounded",
		"proxy:TestNobodyWaitsWhileDraining"},
	"a load balancer does not begin a connection": {"internal/server:TestProxyProtocol",
		"internal/server:TestProxyProtocolDeadline"},
	"an address of a listener cannot be opened": {"cmd/gateway:TestReloadListeners"},
	"an address of a Gateway in policy files":   {"cmd/gateway:TestRoutesOfFiles"},
	"an address of a Gateway in a cluster": {"cmd/gateway:TestClosedListener",
		"internal/ingress:TestUnserved", "internal/cluster:TestUnservedListener"},
	"a client takes its answer more slowly": {"internal/server:TestSlowReaderIsCut",
		"proxy:TestSlowReadersLeaveRoom", "proxy:TestSlowReaderIsCounted"},
	"the audit log cannot be written": {"cmd/gateway:TestFullDiskOfProcess",
		"cmd/gateway:TestClosedPipeOfProcess", "cmd/gateway:TestStandardOutputCloses",
		"cmd/gateway:TestSlowWebhookOfProcess"},
	"the decision log or the log cannot be written": {"cmd/gateway:TestFullDiskOfProcess",
		"cmd/gateway:TestClosedPipeOfProcess"},
	"the collector of OTLP is absent": {"cmd/gateway:TestCollectorFails"},
	"a panic":                         {"internal/server:TestPanic", "proxy:TestPanicCounted"},
}

// TestFailures: each row of the table of faults has a proof, and each proof is there.
func TestFailures(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| fault | answer |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	used := map[string]bool{}
	for row := range strings.Lines(table) {
		fault := strings.TrimPrefix(row, "| ")
		beginnings := slices.DeleteFunc(slices.Sorted(maps.Keys(failureProofs)),
			func(beginning string) bool { return !strings.HasPrefix(fault, beginning) })
		if len(beginnings) != 1 {
			t.Errorf("the row has %d proofs, want one entry: %s", len(beginnings), row)
			continue
		}
		if used[beginnings[0]] {
			t.Errorf("two rows are the same fault: %s", row)
		}
		used[beginnings[0]] = true
	}
	for beginning, proofs := range failureProofs {
		if !used[beginning] {
			t.Errorf("no row of the page begins with %q", beginning)
		}
		if len(proofs) == 0 {
			t.Errorf("%q has no proof", beginning)
		}
		for _, proof := range proofs {
			if !isProof(t, proof) {
				t.Errorf("%q: there is no %s", beginning, proof)
			}
		}
	}
}

// isProof reports whether a test, or a scenario, is there.
func isProof(t *testing.T, name string) bool {
	t.Helper()
	folder, test, isTest := strings.Cut(name, ":")
	if !isTest {
		_, err := os.Stat(filepath.Join("../../proxy/testdata/way", name))
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + test + `\(t \*testing\.T\)`)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && declared.Match(text)
	})
}

// TestFilesWithErrorsAtStart: a process whose policy files have errors ends with 2, and serves nothing before.
func TestFilesWithErrorsAtStart(t *testing.T) {
	t.Parallel()
	_, backend := startBackend(t)
	p := startUnready(t, backend, "--policies",
		write(t, "bad.yaml", strings.Replace(limitPolicy, "requests: 50", "requests: none", 1)))
	if err := p.Wait(); p.ProcessState.ExitCode() != exitUsage {
		t.Errorf("the process ends with %v", err)
	}
	if log := p.log.String(); !strings.Contains(log, "bad.yaml:7") {
		t.Errorf("it does not say where the error is: %s", log)
	}
}

// TestFilesWithErrorsLater: files that get errors, and files that are gone, leave what is in force.
func TestFilesWithErrorsLater(t *testing.T) {
	t.Parallel()
	_, backend := startBackend(t)
	dir := t.TempDir()
	file := testutil.WriteFile(t, filepath.Join(dir, "p.yaml"),
		strings.Replace(limitPolicy, "requests: 50\n  periodSeconds: 1", "requests: 1\n  periodSeconds: 3600", 1))
	p := startServe(t, backend, "--policies", dir)
	ask := func() int { return fetch("http://" + p.listen + "/a").code }
	if first, second := ask(), ask(); first != http.StatusOK || second != http.StatusTooManyRequests {
		t.Fatalf("before: %d, %d", first, second)
	}
	said := func() int { return strings.Count(p.log.String(), "level=ERROR") }
	for what, change := range map[string]func() error{
		"errors": func() error { return os.WriteFile(file, []byte("kind: RateLimitPolicy\n"), 0o600) },
		"gone":   func() error { return os.Remove(file) },
	} {
		before := said()
		if err := change(); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		testutil.Eventually(t, "the log says that the files have "+what, func() bool { return said() > before })
		if code := ask(); code != http.StatusTooManyRequests {
			t.Errorf("%s: the answer is %d", what, code)
		}
	}
}

// TestLimitsThatCannotBeEvaluated: a condition that fails counts as true, a cost that fails as the burst, and requests
// whose key fails are counted together.
func TestLimitsThatCannotBeEvaluated(t *testing.T) {
	t.Parallel()
	const fails = `request.headers['x-none']`
	for name, spec := range map[string]string{
		"condition": "key: Global, requests: 1, periodSeconds: 3600, match: {matchConditions: [{name: c, expression: \"" + fails + " == 'a'\"}]}",
		"cost":      "key: Global, requests: 5, periodSeconds: 3600, cost: \"int(" + fails + ")\"",
		"key":       "keyExpression: \"" + fails + "\", requests: 1, periodSeconds: 3600",
	} {
		_, backend := startBackend(t)
		p := startServe(t, backend, "--policies", write(t, "limit.yaml",
			"apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: l}\nspec: {"+spec+"}\n"))
		if first, second := fetch("http://"+p.listen+"/a").code,
			fetch("http://"+p.listen+"/b").code; first != http.StatusOK || second != http.StatusTooManyRequests {
			t.Errorf("%s: the answers are %d and %d", name, first, second)
		}
	}
}

// A slowBackend answers GETs of a path when it is let go, and other requests at once.
type slowBackend struct {
	*httptest.Server
	arrived chan struct{} // gets a value for each such request
	free    chan struct{}
	letGo   func()
}

func newSlowBackend(t *testing.T, path string) *slowBackend {
	t.Helper()
	b := &slowBackend{arrived: make(chan struct{}, 1000), free: make(chan struct{})}
	b.letGo = sync.OnceFunc(func() { close(b.free) })
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == path {
			b.arrived <- struct{}{}
			<-b.free
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, `{"id":"n1","size":1}`)
	}))
	t.Cleanup(b.Close)
	t.Cleanup(b.letGo)
	return b
}

// isBusy reports whether an answer is 503 and says when to come again.
func isBusy(a *http.Response) bool {
	return a.StatusCode == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != ""
}

// TestNoConnectionIsFree: if no connection gets free in time, a request is 503, and one beyond those that may wait at
// once.
func TestNoConnectionIsFree(t *testing.T) {
	t.Parallel()
	b := newSlowBackend(t, "/a")
	p := startServe(t, "", "--config", write(t, "gateway.yaml", fmt.Sprintf(`apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams: [{name: api, endpoints: [%q], dialect: Plain, maxConnections: 1, queueTimeoutSeconds: 1}]
`, b.URL)))
	ask := func() (*http.Response, error) { return http.Get("http://" + p.listen + "/a") }
	served := make(chan *http.Response, 1)
	go func() {
		a, err := ask()
		if err != nil {
			t.Error(err)
		}
		served <- a
	}()
	<-b.arrived
	for range 2 {
		a, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		if _ = a.Body.Close(); !isBusy(a) {
			t.Errorf("while the connection is in use the answer is %d, Retry-After %q", a.StatusCode,
				a.Header.Get("Retry-After"))
		}
	}
	b.letGo()
	if a := <-served; a != nil {
		if _ = a.Body.Close(); a.StatusCode != http.StatusOK {
			t.Errorf("the request that has the connection is answered %d", a.StatusCode)
		}
	}
	if len(b.arrived) != 0 {
		t.Error("a request that was refused reached the backend")
	}
}

// TestManyWritesOfOneObject: no more than 100 writes wait for an object that is being written.
func TestManyWritesOfOneObject(t *testing.T) {
	t.Parallel()
	b := newSlowBackend(t, "/v1/notes/n1")
	const rule = `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: grows}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [notes]}]}
  validations: [{expression: "!has(oldObject.size) || oldObject.size < 9"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: grows}
spec: {policyName: grows, validationActions: [Deny]}
`
	definition, _, _ := strings.Cut(loggedPolicies, "---\n")
	p := startServe(t, strings.TrimPrefix(b.URL, "http://"), "--policies",
		write(t, "notes.yaml", definition+strings.TrimPrefix(rule, "\n")))
	const waiting, beyond = 100, 10
	codes := make(chan int, 1+waiting+beyond)
	put := func() {
		r, err := http.NewRequest(http.MethodPut, "http://"+p.listen+"/v1/notes/n1",
			strings.NewReader(`{"id":"n1","size":2}`))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		_ = a.Body.Close()
		if a.StatusCode == http.StatusServiceUnavailable && !isBusy(a) {
			t.Error("a 503 has no Retry-After")
		}
		codes <- a.StatusCode
	}
	go put()
	<-b.arrived
	for range waiting + beyond {
		go put()
	}
	for range beyond {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("a write beyond those that may wait is answered %d", code)
		}
	}
	b.letGo()
	for range 1 + waiting {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a write that waited is answered %d", code)
		}
	}
}
