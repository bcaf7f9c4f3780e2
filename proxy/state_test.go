package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/relay"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// classStore is as much of a Kubernetes API server as the conventions' example of storage classes needs: classes that
// can be listed and watched, one of them marked as the default, and claims that can be made.
type classStore struct {
	address string
	http    *http.Server

	mu      sync.Mutex
	version int
	mark    string        // the class that is the default
	changed chan struct{} // closed and replaced at each change
	blocked chan struct{} // lists wait for it, if set
	down    bool
	lists   atomic.Int64
}

func newClassStore(t *testing.T) *classStore {
	t.Helper()
	s := &classStore{version: 1, mark: "fast", changed: make(chan struct{})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = ln.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(ln) }()
	t.Cleanup(func() { _ = s.http.Close() })
	return s
}

// setDefault marks another class as the default, in two steps, as an administrator does.
func (s *classStore) setDefault(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = name
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *classStore) break_(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	close(s.changed)
	s.changed = make(chan struct{})
}

// class is a storage class; as in Kubernetes, in lists it has no kind.
func (s *classStore) class(name, typ string) string {
	return fmt.Sprintf(`{%s"metadata":{"name":%q,"resourceVersion":"%d","annotations":{"storageclass.kubernetes.io/is-default-class":"%v"}}}`, typ, name, s.version, name == s.mark)
}

func (s *classStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	blocked, down := s.blocked, s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"PersistentVolumeClaim"}`)
	case r.URL.Path != "/apis/storage.k8s.io/v1/storageclasses":
		http.Error(w, "{}", http.StatusNotFound)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	default:
		if blocked != nil {
			<-blocked
		}
		s.lists.Add(1)
		s.mu.Lock()
		defer s.mu.Unlock()
		_, _ = fmt.Fprintf(w, `{"kind":"StorageClassList","apiVersion":"storage.k8s.io/v1","metadata":{"resourceVersion":"%d"},"items":[%s,%s]}`,
			s.version, s.class("fast", ""), s.class("slow", ""))
	}
}

// watch reports both classes at each change: the watcher sees both marked, or none, between the two
// events.
func (s *classStore) watch(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w).Flush
	_ = flush()
	seen := r.URL.Query().Get("resourceVersion")
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	over := time.After(time.Duration(seconds) * time.Second)
	for {
		s.mu.Lock()
		changed, down := s.changed, s.down
		var events string
		if now := fmt.Sprint(s.version); now != seen {
			seen = now
			const typ = `"kind":"StorageClass","apiVersion":"storage.k8s.io/v1",`
			events = fmt.Sprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n{\"type\":\"MODIFIED\",\"object\":%s}\n",
				s.class("fast", typ), s.class("slow", typ))
		}
		s.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, events)
		_ = flush()
		select {
		case <-changed:
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

const storagePolicies = `
apiVersion: admission-gateway.io/v1alpha1
kind: StateSource
metadata: {name: classes}
spec:
  resource: {apiVersion: storage.k8s.io/v1, resource: storageclasses}
  whenMissing: %s
  maxStalenessSeconds: %d
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: class}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [persistentvolumeclaims]}]
  variables:
  - name: marked
    expression: "state.classes.filter(c, c.metadata.annotations['storageclass.kubernetes.io/is-default-class'] == 'true').map(c, c.metadata.name + ' of kind ' + c.kind).join(', ')"
  validations:
  - {expression: "object.spec.storageClassName != ''", messageExpression: "'the default is (' + variables.marked + ')'"}
  - expression: "object.spec.storageClassName != ''"
    messageExpression: "'still the default is (' + state.classes.filter(c, c.metadata.annotations['storageclass.kubernetes.io/is-default-class'] == 'true').map(c, c.metadata.name + ' of kind ' + c.kind).join(', ') + ')'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: class}
spec: {policyName: class, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: exists}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [persistentvolumeclaims]}]
  matchConditions: [{name: named, expression: "object.spec.storageClassName != ''"}]
  validations: [{expression: "state.classes.exists(c, c.metadata.name == object.spec.storageClassName)", message: must be a storage class}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: exists}
spec: {policyName: exists, validationActions: [Deny]}
`

// claim is a request for a claim of a class.
func claim(class string) []byte {
	return scenario.JSON("POST /api/v1/namespaces/team-a/persistentvolumeclaims",
		fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"storageClassName":%q}}`, class))
}

// storageGateway serves with the policies before the storage; the returned set can be replaced.
func storageGateway(t *testing.T, s *classStore, whenMissing string, staleness int) (address string, g *Gateway) {
	t.Helper()
	set := policiestest.Load(t, fmt.Sprintf(storagePolicies, whenMissing, staleness))
	c, err := config.Load("", config.Flags{Upstream: "http://" + s.address, Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	g = newTestGateway(t, c, func() *policies.Set { return set })
	return startGateway(t, g), g
}

// verdict is the code and what a policy says in the answer to a claim.
func verdict(t *testing.T, address, class string) string {
	t.Helper()
	raw := string(exchangeRaw(t, address, claim(class)))
	_, message, found := strings.Cut(raw, `"message":"`)
	if !found {
		return raw[len("HTTP/1.1 "):][:3]
	}
	message, _, _ = strings.Cut(message, `","reason"`)
	_, after, _ := strings.Cut(message, "denied request: ")
	return raw[len("HTTP/1.1 "):][:3] + " " + after
}

const defaultIs = "422 the default is (%[1]s of kind StorageClass); ValidatingAdmissionPolicy 'class' with binding 'class' denied request: still the default is (%[1]s of kind StorageClass)"

// TestStorageClasses is the example of the API conventions: a default that is marked by an
// annotation of another object, which changes while requests run, is not known yet, and becomes out
// of date (DEF-4).
func TestStorageClasses(t *testing.T) {
	s := newClassStore(t)
	s.blocked = make(chan struct{})
	address, _ := storageGateway(t, s, "Fail", 1)
	const reading = "422 expression 'state.classes.exists(c, c.metadata.name == object.spec.storageClassName)' resulted in error: the state 'classes' "
	if got := verdict(t, address, "fast"); got != reading+"has not been read yet" {
		t.Errorf("before the first reading: %s", got)
	}
	close(s.blocked)
	testutil.Becomes(t, "201", func() string { return verdict(t, address, "fast") })
	if got := verdict(t, address, "gone"); got != "422 must be a storage class" {
		t.Errorf("a class that does not exist: %s", got)
	}
	for _, mark := range []string{"fast", "slow", "fast"} {
		s.setDefault(mark)
		testutil.Becomes(t, fmt.Sprintf(defaultIs, mark), func() string { return verdict(t, address, "") })
	}
	if n := s.lists.Load(); n != 1 {
		t.Errorf("listed %d times", n)
	}
	s.break_(true)
	testutil.Becomes(t, "stale", func() string {
		if strings.HasPrefix(verdict(t, address, "fast"), reading+"is stale: it was last known ") {
			return "stale"
		}
		return "known"
	})
	s.break_(false)
	s.setDefault("slow")
	testutil.Becomes(t, fmt.Sprintf(defaultIs, "slow"), func() string { return verdict(t, address, "") })
}

// TestStorageClassesSkipped: a policy may do without what is not known.
func TestStorageClassesSkipped(t *testing.T) {
	t.Parallel()
	s := newClassStore(t)
	s.blocked = make(chan struct{})
	address, _ := storageGateway(t, s, "Skip", 1)
	if got := verdict(t, address, "gone"); got != "201" {
		t.Errorf("before the first reading: %s", got)
	}
	close(s.blocked)
	testutil.Becomes(t, "422 must be a storage class", func() string { return verdict(t, address, "gone") })
	s.break_(true)
	// Claims do not get through while it is down; that the policy no longer speaks shows in the backend's own failure.
	testutil.Becomes(t, "504", func() string { return verdict(t, address, "gone")[:3] })
}

// TestRequestSeesOneState: while the default changes, is out of reach and policies are loaded anew, each request sees
// the classes as they were at one moment, from its first look to its last.
func TestRequestSeesOneState(t *testing.T) {
	s := newClassStore(t)
	address, g := storageGateway(t, s, "Fail", 3600)
	testutil.Becomes(t, fmt.Sprintf(defaultIs, "fast"), func() string { return verdict(t, address, "") })
	stop := make(chan struct{})
	var changing, load sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			s.setDefault([]string{"fast", "slow"}[i%2])
			if i%50 == 25 {
				g.states.Apply(nil) // a set that reads nothing
				g.states.Apply(g.policies().States())
			}
		}
	})
	for range 4 {
		load.Go(func() {
			for range 200 {
				raw := exchangeRaw(t, address, claim(""))
				_, first, _ := bytes.Cut(raw, []byte("the default is "))
				first, rest, _ := bytes.Cut(first, []byte("; Valid"))
				_, second, found := bytes.Cut(rest, []byte("still the default is "))
				second, _, _ = bytes.Cut(second, []byte(`"`))
				if !found || !bytes.Equal(first, second) {
					t.Errorf("a request saw two states, %q and %q: %s", first, second, raw)
					return
				}
			}
		})
	}
	load.Wait()
	close(stop)
	changing.Wait()
}

const liveParams = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: live}
spec:
  failurePolicy: %s
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [persistentvolumeclaims]}]
  validations: [{expression: "params.data.ok == 'yes'", message: must be ok}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: live}
spec: {policyName: live, validationActions: [Deny], paramRef: {name: settings, parameterNotFoundAction: Allow}}
`

// TestParamsWhileTheBackendFails: every way in which parameters cannot be read is a failure of the policy, never a
// missing parameter, and takes no longer than the client has time.
func TestParamsWhileTheBackendFails(t *testing.T) {
	const created = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	// What ends with the answer says so, or a write may come too late to be answered.
	closing := func(answer string) fault {
		return answers(strings.Replace(answer, "\r\n", "\r\nConnection: close\r\n", 1))
	}
	post := strings.Replace(string(claim("x")), " HTTP/1.1", "?timeout=300ms HTTP/1.1", 1)
	for _, c := range []struct {
		name         string
		fault        func(c net.Conn)
		fail, ignore string
	}{
		{"dies", dies, "422 failed to configure binding: the ConfigMap 'settings' cannot be read: the backend closed the connection before its answer was complete", "201"},
		{"hangs", hangs, "504 the request was over before its policies had decided", "201 or 504"},
		{"forbids", closing("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), "422 failed to configure binding: the ConfigMap 'settings' cannot be read: the backend answered 403 Forbidden: " +
			`add {apiGroups: [\"\"], resources: [\"configmaps\"], verbs: [\"get\"]} to the role of the gateway's own account`, "201"},
		{"fails", closing("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 6\r\n\r\nSECRET"), "422 failed to configure binding: the ConfigMap 'settings' cannot be read: the backend answered 500 Internal Server Error", "201"},
		{"answers nonsense", closing("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nSECRET"), "422 failed to configure binding: the ConfigMap 'settings' cannot be read: the backend's answer cannot be read", "201"},
		{"has none", closing("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "201", "201"},
		{"has one", closing("HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{\"data\":{\"ok\":\"no\"}} "),
			"422 must be ok", "422 must be ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := serveByMethod(t, c.fault, closing(created))
			for policy, want := range map[string]string{"Fail": c.fail, "Ignore": c.ignore} {
				dir := policiestest.Write(t, fmt.Sprintf(liveParams, policy))
				gateway := startGateway(t, gatewayFor(t, dir, address, []string{"kubernetes"}))
				raw := string(exchangeRaw(t, gateway, []byte(post)))
				_, message, _ := strings.Cut(raw, `"message":"`)
				message, _, _ = strings.Cut(message, `","reason"`)
				if _, after, found := strings.Cut(message, "denied request: "); found {
					message = after
				}
				got := strings.TrimSpace(raw[len("HTTP/1.1 "):][:3] + " " + message)
				if got != want && (want != "201 or 504" || got[:3] != "201" && got[:3] != "504") ||
					strings.Contains(raw, "SECRET") {
					t.Errorf("%s: %s\nwant %s", policy, got, want)
				}
			}
		})
	}
}

// serveByMethod is a backend that does one thing with reads and another with writes.
func serveByMethod(t *testing.T, read, write fault) string {
	t.Helper()
	return serveConns(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			read(c)
		} else {
			write(c)
		}
	})
}

// TestNamespaceWhileTheBackendFails: a namespace that cannot be read is a failure of the policy
// that needs it, which its failurePolicy decides about, whatever the policy needs it for.
func TestNamespaceWhileTheBackendFails(t *testing.T) {
	const created = "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	const rules = "resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [persistentvolumeclaims]}]"
	const selector = ", namespaceSelector: {matchLabels: {tier: prod}}"
	const validating = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: live}\n" +
		"spec: {failurePolicy: %s, matchConstraints: {" + rules + "%s}, validations: [{expression: \"%s\"}]}\n---\n" +
		"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: live}\nspec: {policyName: live, validationActions: [Deny]}\n"
	const mutating = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: live}\n" +
		"spec: {failurePolicy: %s, reinvocationPolicy: Never, matchConstraints: {" + rules + "%s}, mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"%s\"}}]}\n---\n" +
		"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: live}\nspec: {policyName: live}\n"
	const reads = "namespaceObject.metadata.name == 'x'"
	const patches = "namespaceObject.metadata.name == 'x' ? [JSONPatch{op: 'test', path: '/a', value: 1}] : []"
	for _, c := range []struct {
		name, policy, selector, expression string
		fail                               int
	}{
		{"a validation", validating, "", reads, 422},
		{"a selector of a validating policy", validating, selector, "true", 422},
		{"a mutation", mutating, "", patches, 403},
		{"a selector of a mutating policy", mutating, selector, "[JSONPatch{op: 'test', path: '/a', value: 1}]", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := serveByMethod(t, dies, answers(created))
			for policy, want := range map[string]int{"Fail": c.fail, "Ignore": 201} {
				dir := policiestest.Write(t, fmt.Sprintf(c.policy, policy, c.selector, c.expression))
				gateway := startGateway(t, gatewayFor(t, dir, address, []string{"kubernetes"}))
				if raw := string(exchangeRaw(t, gateway, claim("x"))); !strings.HasPrefix(raw,
					fmt.Sprintf("HTTP/1.1 %d ", want)) {
					t.Errorf("%s: %s\nwant %d", policy, raw, want)
				}
			}
		})
	}
}

// TestDeadConnectionOfState: a connection that carries nothing any more, though neither end closes it, is noticed
// before the objects of a StateSource are too old. The watch goes on over another one, and nothing is listed anew.
func TestDeadConnectionOfState(t *testing.T) {
	s := newClassStore(t)
	way := relay.New(t, s.address)
	s.address = way.Address()
	address, _ := storageGateway(t, s, "Fail", 4)
	testutil.Becomes(t, fmt.Sprintf(defaultIs, "fast"), func() string { return verdict(t, address, "") })
	way.Freeze()
	s.setDefault("slow")
	testutil.Becomes(t, fmt.Sprintf(defaultIs, "slow"), func() string { return verdict(t, address, "") })
	if n := s.lists.Load(); n != 1 {
		t.Errorf("listed %d times", n)
	}
}
