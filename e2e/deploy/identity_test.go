package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// platformOnly lets the groups platform and system:masters write ConfigMaps, and shows whom it takes the client for.
const platformOnly = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: platform-only}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations:
  - expression: request.userInfo.groups.exists(g, g in ['platform', 'system:masters'])
    messageExpression: "'not for ' + request.userInfo.username"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: platform-only}
spec: {policyName: platform-only, validationActions: [Deny]}
`

// writers may write ConfigMaps, as far as the API server is concerned.
const writers = `
apiVersion: v1
kind: Namespace
metadata: {name: identified}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: identified}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: job-controller, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, name: robot, namespace: identified}
- {kind: ServiceAccount, name: job-controller, namespace: kube-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: open}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: anybody, namespace: open}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:anonymous"}
`

// Both ways to stand before an API server, with the limit that may be added, as they are before a kube-apiserver with
// RBAC: the policies and the limit see who the API server says it is, by the rights that deploy/ gives the gateway.
func TestShippedIdentity(t *testing.T) {
	c := commonCluster(t)
	c.namespace(t, "gateway-system")
	c.account(t, "gateway-system")
	c.must(t, writers, "apply", "-f", "-")
	values := example(t, "apiserver")
	maps.Copy(values["policies"].(map[string]any), example(t, "apiserver-limits")["policies"].(map[string]any))
	for _, name := range []string{"serviceMonitor", "prometheusRule", "dashboard"} {
		// the first two are of kinds that the cluster does not know
		delete(values, name)
	}
	chart, err := template(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for way, text := range map[string]string{
		"kustomize": kustomize(t, "resources: [kustomize/apiserver]\ncomponents: [kustomize/apiserver-limits]\n"),
		"helm":      chart} {
		c.must(t, text, "apply", "--namespace=gateway-system", "-f", "-")
		t.Run(way, func(t *testing.T) { identifies(t, c, way, text) })
		c.must(t, text, "delete", "--namespace=gateway-system", "-f", "-")
	}
}

// identifies proves whom a gateway of the objects takes clients for.
func identifies(t *testing.T, c *cluster, way, text string) {
	dir := t.TempDir()
	issuer := newAuthority(t)
	for _, folder := range []string{"client-ca", "tls", "account", "config", "policies"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "client-ca", "ca.crt"), encoded("CERTIFICATE", issuer.certificate.Raw))
	server := issuer.issue(t, "gateway", nil)
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls", "tls.crt"), encoded("CERTIFICATE", server.Certificate[0]))
	write(t, filepath.Join(dir, "tls", "tls.key"), encoded("PRIVATE KEY", key))
	write(t, filepath.Join(dir, "account", "token"), c.token(t, "gateway-system", "gateway"))

	listen, admin := testutil.FreeAddress(t), testutil.FreeAddress(t)
	for key, o := range objects(t, text) {
		if !strings.HasPrefix(key, "ConfigMap gateway-") {
			continue
		}
		var files corev1.ConfigMap
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &files); err != nil {
			t.Fatal(err)
		}
		for name, text := range files.Data {
			folder := strings.Split(files.Name, "-")[1] // config, policies
			write(t, filepath.Join(dir, folder, name), strings.NewReplacer("/etc/gateway", dir, "0.0.0.0:8080", listen,
				"0.0.0.0:8081", admin).Replace(text))
		}
	}
	write(t, filepath.Join(dir, "policies", "platform.yaml"), platformOnly)
	// The upstream that a Pod has without naming it, with its account in another folder.
	file := filepath.Join(dir, "config", "gateway.yaml")
	configuration, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(configuration)+fmt.Sprintf("\nupstreams: [{name: kubernetes, endpoints: [%q], dialect: Kubernetes, tokenFile: %s, tls: {insecureSkipTLSVerify: true}}]\n",
		c.url, filepath.Join(dir, "account", "token")))
	start(t, answers("http://"+admin+"/readyz"), filepath.Join(dir, "log"), gateway, "serve", "--config", file)

	ask := func(method, path, body, token string, certificate ...tls.Certificate) (code int, answer string,
		limited bool) {
		t.Helper()
		r, err := http.NewRequest(method, "https://"+listen+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Header.Set("Content-Type", "application/json")
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: issuer.pool(), Certificates: certificate}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		b, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(b), response.Header.Get("RateLimit-Policy") != ""
	}
	robot, controller := c.token(t, "identified", "robot"), c.token(t, "kube-system", "job-controller")
	platform := issuer.issue(t, "paula", []string{"platform"})
	kubelet := issuer.issue(t, "system:node:a", []string{"system:nodes"})
	for _, one := range []struct {
		name, token  string
		certificates []tls.Certificate
		namespace    string
		code         int
		says         string
	}{
		{"an administrator", "of-root", nil, "identified", 201, ""},
		{"a service account", robot, nil, "identified", 422, "not for system:serviceaccount:identified:robot"},
		{"a token for another audience",
			c.tokenFor(t, "identified", "robot", authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}}), nil,
			"identified", 401, "Unauthorized"},
		{"a token that nobody knows", "of-mallory", nil, "identified", 401, "Unauthorized"},
		// Whether their answers mention policies depends on whether they may write at all.
		{"nobody", "", nil, "identified", 403, `User \"system:anonymous\" cannot create resource \"configmaps\"`},
		// Under Pass the API server does not see the certificate: docs/identity.md says what to do.
		{"a certificate of the group", "", []tls.Certificate{platform}, "identified", 403,
			`User \"system:anonymous\" cannot create resource \"configmaps\"`},
		{"a token beside a certificate of the group", robot, []tls.Certificate{platform}, "identified", 422,
			"not for system:serviceaccount:identified:robot"},
		// Where the API server lets anybody write, policies alone decide.
		{"nobody, who may write", "", nil, "open", 422, "not for system:anonymous"},
		{"a certificate of the group, who may write", "", []tls.Certificate{platform}, "open", 201, ""},
		{"another certificate, who may write", "", []tls.Certificate{kubelet}, "open", 422, "not for system:node:a"},
	} {
		name := strings.NewReplacer(" ", "-", ",", "").Replace(way + " " + one.name)
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
		if code, answer, _ := ask("POST", "/api/v1/namespaces/"+one.namespace+"/configmaps", body, one.token,
			one.certificates...); code != one.code || !strings.Contains(answer, one.says) {
			t.Errorf("%s is answered %d %s, want %d with %q", one.name, code, answer, one.code, one.says)
		}
	}
	for _, one := range []struct {
		name, token  string
		certificates []tls.Certificate
		limited      bool
	}{
		{"a controller of kube-system", controller, nil, false},
		{"an administrator", "of-root", nil, false},
		{"a node", "", []tls.Certificate{kubelet}, false},
		{"another service account", robot, nil, true},
		{"nobody", "", nil, true},
	} {
		if _, _, limited := ask("GET", "/version", "", one.token, one.certificates...); limited != one.limited {
			t.Errorf("%s is limited: %t, want %t", one.name, limited, one.limited)
		}
	}
}

// authority signs the certificates of a cluster.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, key}
	raw, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue makes a certificate, for 127.0.0.1 and hosts too.
func (a *authority) issue(t *testing.T, user string, groups []string, hosts ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func encoded(kind string, raw []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}

// token makes a token of a service account, as the kubelet does for its Pods.
func (c *cluster) token(t *testing.T, namespace, account string) string {
	t.Helper()
	return c.tokenFor(t, namespace, account, authenticationv1.TokenRequestSpec{})
}

// tokenFor makes a token for an audience, or one that is bound to an object.
func (c *cluster) tokenFor(t *testing.T, namespace, account string, asked authenticationv1.TokenRequestSpec) string {
	t.Helper()
	code, body := ask(t, "of-root", "POST", c.url+"/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		"application/json",
		string(inJSON(&authenticationv1.TokenRequest{Spec: asked})))
	var answer authenticationv1.TokenRequest
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != http.StatusCreated {
		t.Fatalf("a token of %s/%s is answered %d %s", namespace, account, code, body)
	}
	return answer.Status.Token
}

// The role is bound to the account in the namespace in which the account is, without a namespace of the user's own too:
// `kubectl apply --namespace` would change one of them alone.
func TestRoleIsBoundToTheAccount(t *testing.T) {
	for name, c := range map[string]struct{ kustomization, namespace string }{
		"as it comes": {"resources: [kustomize/apiserver]\n", "gateway-system"},
		"elsewhere":   {"resources: [kustomize/apiserver]\nnamespace: payments\n", "payments"},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, kustomize(t, c.kustomization))
			for key, o := range all {
				if got := o.GetNamespace(); got != c.namespace && !strings.HasPrefix(key, "ClusterRole") {
					t.Errorf("%s is in the namespace %q, want %q", key, got, c.namespace)
				}
			}
			var binding rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all["ClusterRoleBinding gateway"].Object,
				&binding); err != nil {
				t.Fatal(err)
			}
			if len(binding.Subjects) != 1 ||
				binding.Subjects[0] != (rbacv1.Subject{Kind: "ServiceAccount", Name: "gateway",
					Namespace: c.namespace}) {
				t.Errorf("the role is bound to %+v", binding.Subjects)
			}
		})
	}
}
