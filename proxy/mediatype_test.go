package proxy

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

const protobufHead = " HTTP/1.1\r\nHost: api\r\nAccept: application/vnd.kubernetes.protobuf, */*\r\nContent-Type: application/vnd.kubernetes.protobuf\r\nContent-Length: "

// protobufRequest is a request as client-go sends it for Kubernetes' own kinds.
func protobufRequest(t testing.TB, line string, o runtime.Object) string {
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return line + protobufHead + strconv.Itoa(b.Len()) + "\r\n\r\n" + b.String()
}

const smallPods = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: owned}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [pods, pods/eviction, configmaps]}]
  validations:
  - {expression: "!(object.metadata.name.startsWith('bad'))", message: "may not be bad"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: owned}
spec: {policyName: owned, validationActions: [Deny]}
`

// Protobuf of Kubernetes' own kinds is admitted as the JSON that the server gets, and answered in the server's own
// protobuf; whatever cannot be read gets no further (RES-7).
func TestProtobuf(t *testing.T) {
	dir := policiestest.Write(t, smallPods)
	const pods, answered = "/api/v1/namespaces/team-a/pods", "HTTP/1.1 201 Created\nContent-Type: application/vnd.kubernetes.protobuf\nContent-Length: *\n\nk8s\x00\x01\x02"
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: named(name)}
	}
	const sentPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p1"},"spec":{"containers":null},"status":{}}`
	large := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: named("c1"),
		Data: map[string]string{"a": strings.Repeat("x", 100_000)}}
	background := metav1.DeletePropagationBackground
	for _, c := range []struct {
		name, request string
		code          int
		sent, answer  string // parts of what the backend gets, and of the answer
	}{
		{"a pod", protobufRequest(t, "POST "+pods, pod("p1")), 201, sentPod, "k8s\x00\x01\x02"},
		{"a large one", protobufRequest(t, "POST /api/v1/namespaces/team-a/configmaps", large), 201,
			strings.Repeat("x", 100_000) + `"}}`, "k8s\x00"},
		{"an eviction", protobufRequest(t, "POST "+pods+"/p1/eviction",
			&policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
				ObjectMeta: named("p1")}), 201, `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p1"}}`,
			""},
		{"a deletion", protobufRequest(t, "DELETE /apis/example.com/v1/namespaces/team-a/widgets/w1",
			&metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeleteOptions"}, PropagationPolicy: &background}), 201, `{"kind":"DeleteOptions","apiVersion":"apps/v1","propagationPolicy":"Background"}`, ""},
		{"one that is denied", protobufRequest(t, "POST "+pods, pod("bad")), 422, "", `may not be bad`},
		{"a version that contradicts the URL",
			protobufRequest(t, "PUT "+pods+"/p1", &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: named("p2")}), 400, "", "does not match the name on the URL"},
		{"garbage", "POST " + pods + protobufHead + "8\r\n\r\nk8s\x00\xff\xff\xff\xff", 400, "", "ends within a field"},
		{"nothing", "POST " + pods + protobufHead + "0\r\n\r\n", 400, "", "must not be empty"},
		{"JSON", "POST " + pods + protobufHead + "2\r\n\r\n{}", 400, "", "begins with the bytes 'k8s' and 0"},
		{"with a parameter", strings.Replace(protobufRequest(t, "POST "+pods, pod("p1")), "protobuf\r\nContent-Length",
			"protobuf;stream=watch\r\nContent-Length", 1), 415, "",
			"application/json, application/yaml, application/vnd.kubernetes.protobuf\""},
		{"a patch", strings.Replace(protobufRequest(t, "PATCH "+pods+"/p1", pod("p1")), "POST", "PATCH", 1), 415, "",
			"application/apply-patch+yaml"},
		{"CBOR", strings.Replace(protobufRequest(t, "POST "+pods, pod("p1")),
			"Type: application/vnd.kubernetes.protobuf", "Type: application/cbor", 1), 400, "",
			"the body must be CBOR that can be read in one way only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := scenario.NewBackend(t, listenBackend(t), [][]byte{[]byte(answered)})
			g := gatewayFor(t, dir, backend.Address, []string{"kubernetes"})
			got := string(exchangeRaw(t, startGateway(t, g), []byte(c.request)))
			sent := string(backend.Received())
			if !strings.HasPrefix(got, "HTTP/1.1 "+strconv.Itoa(c.code)) || !strings.Contains(got, c.answer) {
				t.Errorf("answered %.600s", got)
			}
			if c.sent == "" != (sent == "") || !strings.Contains(sent, c.sent) {
				t.Errorf("the backend got %.600s", sent)
			}
			if sent != "" && (!strings.Contains(sent, "Content-Type: application/json\r\n") ||
				strings.Count(sent, "Content-Type") != 1 ||
				!strings.Contains(sent, "Accept: application/vnd.kubernetes.protobuf, */*\r\n")) {
				t.Errorf("the backend got the head %.500s", sent)
			}
			testutil.Eventually(t, "all memory is given back", func() bool { return g.BodyBytesInFlight() == 0 })
		})
	}
	testutil.WriteFile(t, filepath.Join(dir, "pods.yaml"), `
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: pods}
spec: {match: {apiGroups: [""], resources: [pods]}, requests: 1000, periodSeconds: 1}
`)
	plain := gatewayFor(t, dir, scenario.NewBackend(t, listenBackend(t), nil).Address, nil)
	if got := string(exchangeRaw(t, startGateway(t, plain),
		[]byte(protobufRequest(t, "POST "+pods, pod("p1"))))); !strings.Contains(got, `include: application/json"`) {
		t.Errorf("a plain backend's client is answered %s", got)
	}
}

// What bodies in other languages become counts as they do, from the first byte to the last (RES-7).
func TestTranscodedAmplification(t *testing.T) {
	if testing.Short() {
		t.Skip("sends megabytes one after the other")
	}
	const size = 1 << 20
	fill := func(item string) string { return strings.Repeat(item, size/len(item)) }
	sized := func(b ...byte) string { return string(b) }
	inMetadata := func(raw string) string { return lengthy(1, raw) }
	for _, c := range []struct{ name, contentType, body string }{
		{"empty finalizers", "application/vnd.kubernetes.protobuf", enveloped(inMetadata(fill(sized(14<<3|2, 0))))},
		{"empty labels", "application/vnd.kubernetes.protobuf", enveloped(inMetadata(fill(sized(11<<3|2, 0))))},
		{"control characters", "application/vnd.kubernetes.protobuf", enveloped(inMetadata(lengthy(1, fill("\x01"))))},
		{"empty containers", "application/vnd.kubernetes.protobuf", enveloped(lengthy(2, fill(sized(2<<3|2, 0))))},
		{"garbage", "application/vnd.kubernetes.protobuf", "k8s\x00" + fill("\xff")},
		{"items of YAML", "application/yaml", "a: [" + fill("b,") + "]"},
		{"sparse items of YAML", "application/yaml", "a: [" + strings.Repeat("b,", size/13) + fill(" ") + "]"},
		{"lines of YAML", "application/yaml", "a: |\n" + fill(" x\n")},
		{"comments of YAML", "application/yaml", fill("#\n") + "a: b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gatewayFor(t, t.TempDir(), newSink(t, "{}").address, []string{"kubernetes"})
			address := startGateway(t, g)
			request := "POST /api/v1/namespaces/team-a/pods HTTP/1.1\r\nHost: gw\r\nContent-Type: " + c.contentType +
				"\r\nContent-Length: "
			// the kinds are learnt once
			_ = exchangeRaw(t, address, []byte(request+strconv.Itoa(len(enveloped("")))+"\r\n\r\n"+enveloped("")))
			m := least(t, address, request+strconv.Itoa(len(c.body))+"\r\n\r\n"+c.body)
			if most := int64(maxAmplification*len(c.body) + perRequest); m.allocated > most {
				t.Errorf("%d bytes made the gateway allocate %d, which is more than %d", len(c.body), m.allocated, most)
			}
			t.Logf("answered %d after %.1f times as much", m.code, float64(m.allocated)/float64(len(c.body)))
			testutil.Eventually(t, "all memory is given back", func() bool { return g.BodyBytesInFlight() == 0 })
		})
	}
}

// lengthy is a field of protobuf with its length before it.
func lengthy(number byte, value string) string {
	b := []byte{number<<3 | 2}
	n := len(value)
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return string(append(b, byte(n))) + value
}

// enveloped is the body of a Pod.
func enveloped(raw string) string {
	return "k8s\x00" + lengthy(1, lengthy(1, "v1")+lengthy(2, "Pod")) + lengthy(2, raw)
}
