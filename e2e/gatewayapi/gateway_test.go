package gatewayapi

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/e2e/gatewayapi/cluster"
	"github.com/admission-gateway/gateway/e2e/testutil"
)

// A gatewayProcess is a gateway that watches the cluster.
type gatewayProcess struct {
	*cluster.Process
	// admin is the base URL of its admin listener.
	admin  string
	config string
	log    string
}

// gatewayOptions are what tests that run at the same time have to themselves.
type gatewayOptions struct {
	// controller is the name of the controller, of the Lease, and of the class that TestMain's cluster has for it.
	controller string
	// pool has the addresses of its Gateways.
	pool []string
	// more is text of the configuration.
	more string
}

// class returns the GatewayClass of a gateway.
func class(name string) string {
	return fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: %s}\nspec: {controllerName: example.com/%[1]s}\n", name)
}

// startGateway runs a gateway until the test ends, and waits until it is ready.
func startGateway(t *testing.T, o gatewayOptions) *gatewayProcess {
	t.Helper()
	g := newGateway(t, o)
	g.start(t)
	t.Cleanup(func() {
		g.Stop()
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", g.Tail())
		}
	})
	g.awaitReady(t)
	return g
}

// newGateway writes the configuration of a gateway.
func newGateway(t *testing.T, o gatewayOptions) *gatewayProcess {
	t.Helper()
	grant(t)
	kubeconfig, err := shared.Kubeconfig(cluster.Gateway)
	if err != nil {
		t.Fatal(err)
	}
	dir, admin := t.TempDir(), testutil.FreeAddress(t)
	g := &gatewayProcess{admin: "http://" + admin, config: filepath.Join(dir, "gateway.yaml"),
		log: filepath.Join(dir, "gateway.log")}
	text := fmt.Sprintf(`apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: %s
admin: {listen: %q}
kubernetes:
  watch:
    kubeconfig: %s
    controllerName: example.com/%s
    addresses: [%s]
    lease: {namespace: kube-system, name: %[4]s}
%[6]s`, testutil.FreeAddress(t), admin, kubeconfig, o.controller, strings.Join(o.pool, ", "), o.more)
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

// grant gives the user of the gateways what the kustomization gives to the account of the gateway, and a Lease for
// each.
func grant(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kustomize/controller/account.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		if strings.Contains(document, "kind: ClusterRole\n") {
			apply(t, document)
		}
	}
	apply(t, rights)
}

const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gateways-of-tests}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gateway}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: gateway}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: gateways-of-tests, namespace: kube-system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gateways-of-tests, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gateways-of-tests}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: gateway}]
`

func (g *gatewayProcess) start(t *testing.T) {
	t.Helper()
	var err error
	if g.Process, err = cluster.StartProcess(g.log, built.Gateway, "serve", "--config", g.config); err != nil {
		t.Fatal(err)
	}
}

// awaitReady waits until the gateway says that it is ready.
func (g *gatewayProcess) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "the gateway is ready", func() bool {
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		code, _ := fetch(t, g.admin+"/readyz")
		return code == http.StatusOK
	})
}

// version returns the version that the gateway says it is.
func (g *gatewayProcess) version(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(built.Gateway, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 {
		t.Fatal("the gateway says no version")
	}
	return fields[1]
}
