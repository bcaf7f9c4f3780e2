package gatewayapi

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// front is a Gateway in a namespace that has echoes, with a route to them.
const front = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: $NS}
spec:
  gatewayClassName: $CLASS
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: $NS}
spec:
  parentRefs: [{name: front}]
  hostnames: [shop.example.com]
  rules: [{backendRefs: [{name: echo, port: 80}]}]
`

// raiseFront brings echoes, and the Gateway in front of them, into a namespace of the name of its class.
func raiseFront(t *testing.T, name string) {
	t.Helper()
	all := strings.NewReplacer("$NS", name, "$CLASS", name).Replace(class(name) + "---" + echoes + "---" + front)
	apply(t, all)
	t.Cleanup(func() { remove(t, all) })
}

// addressOf waits until a Gateway is programmed, and returns its address.
func addressOf(t *testing.T, namespace, name string) (address string) {
	t.Helper()
	c := newClient(t)
	eventually(t, "the Gateway "+namespace+"/"+name+" is programmed", func() bool {
		var g gatewayv1.Gateway
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &g); err != nil {
			return false
		}
		for _, condition := range g.Status.Conditions {
			if condition.Type == string(gatewayv1.GatewayConditionProgrammed) && condition.Status == "True" &&
				len(g.Status.Addresses) > 0 {
				address = g.Status.Addresses[0].Value
				return true
			}
		}
		return false
	})
	return address
}

// Losing the API server changes nothing for clients, and what changes after it has come back is in force.
func TestAPIServerIsLost(t *testing.T) {
	raiseFront(t, "lost")
	startGateway(t, gatewayOptions{controller: "lost", pool: []string{"10.100.2.0/24"}})
	url := "http://" + addressOf(t, "lost", "front") + "/"
	awaitAnswer(t, once, url, "shop.example.com", http.StatusOK)
	l := startLoad(t, 4, url, "shop.example.com")
	l.await(t, 100)
	shared.StopAPIServer()
	l.await(t, 2000)
	if err := shared.StartAPIServer(); err != nil {
		t.Fatal(err)
	}
	apply(t, strings.NewReplacer("$NS", "lost", "$CLASS", "lost", "shop.example.com",
		"shop.example.com, late.example.com").Replace(front))
	awaitAnswer(t, once, url, "late.example.com", http.StatusOK)
	l.allSucceeded(t)
}

// A gateway that starts without the API server serves nothing that it does not know, and says that it is not ready.
func TestStartWithoutAPIServer(t *testing.T) {
	raiseFront(t, "without")
	first := startGateway(t, gatewayOptions{controller: "without", pool: []string{"10.100.3.0/24"}})
	address := addressOf(t, "without", "front")
	awaitAnswer(t, once, "http://"+address+"/", "shop.example.com", http.StatusOK)
	first.Stop()
	shared.StopAPIServer()
	first.start(t)
	t.Cleanup(first.Stop)
	eventually(t, "the gateway says that it is not ready", func() bool {
		if err := first.Err(); err != nil {
			t.Fatal(err)
		}
		code, _ := fetch(t, first.admin+"/readyz")
		return code == http.StatusServiceUnavailable
	})
	if c, err := net.Dial("tcp", address+":80"); err == nil {
		_ = c.Close()
		t.Error("the gateway listens for a Gateway that it cannot know")
	}
	if err := shared.StartAPIServer(); err != nil {
		t.Fatal(err)
	}
	first.awaitReady(t)
	awaitAnswer(t, once, "http://"+address+"/", "shop.example.com", http.StatusOK)
}
