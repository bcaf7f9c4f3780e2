package cases_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cases"
)

// TestAgreementBeforeKubernetes plays what was recorded of real servers, protocol and policies, in
// front of a real server without the policies: clients get the answers of one that enforces them
// itself. What differs is named, on purpose (testdata/kubernetes/deliberate.txt) or not yet. The
// server, whose base URL is in APISERVER, has the lab's definitions; the tests in e2e/ start one
// and run this.
func TestAgreementBeforeKubernetes(t *testing.T) {
	server := os.Getenv("APISERVER")
	if server == "" {
		t.Skip("APISERVER names no API server; the tests in e2e/ do")
	}
	suites := suitesDir(t)
	gateway := buildGateway(t)
	deliberate, err := cases.ReadDeliberate("testdata/kubernetes/deliberate.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, set := range []string{"protocol", "vap-map-lab"} {
		t.Run(set, func(t *testing.T) {
			all, err := cases.Read(filepath.Join(suites, "cases", set+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var results []*cases.Result
			for _, group := range byPolicies(all) {
				results = append(results, playBefore(t, server, gateway, suites, group)...)
			}
			for _, r := range results {
				known[r.Case.ID] = true
			}
			compareWithLedger(t, "kubernetes/"+set, results, deliberate, "How far the gateway before a real API server agrees with the recorded answers of "+set+".jsonl. The numbers may only rise;\n"+
				"in e2e/, go test -run TestRecordedCases -update records it. Open cases say what they wait for.")
		})
	}
	for _, d := range deliberate {
		if !known[d.ID] && !t.Failed() {
			t.Errorf("testdata/kubernetes/deliberate.txt: there is no case %s", d.ID)
		}
	}
}

// playBefore plays cases through a gateway with their policies, each over an empty server.
func playBefore(t *testing.T, server, gateway, suites string, group []*cases.Case) []*cases.Result {
	t.Helper()
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	text := "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nidentity: {anonymous: Allow}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config", config, "--upstream", server, "--dialect", "Kubernetes"}
	for _, file := range group[0].PolicyFiles {
		args = append(args, "--policies", filepath.Join(suites, file))
	}
	player := cases.Player{Address: serve(t, gateway, args...)}
	var results []*cases.Result
	for _, c := range group {
		empty(t, server+"/apis/lab.example.com/v1/", "widgets", "gizmos")
		result, err := player.Play(c)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
	}
	return results
}

// empty removes what an earlier case left on the server, finalizers or not.
func empty(t *testing.T, api string, resources ...string) {
	t.Helper()
	for _, resource := range resources {
		for _, object := range objects(t, api+resource) {
			url := api
			if object.Namespace != "" {
				url += "namespaces/" + object.Namespace + "/"
			}
			url += resource + "/" + object.Name
			ask(t, http.MethodPatch, url, "application/merge-patch+json", `{"metadata":{"finalizers":null}}`)
			ask(t, http.MethodDelete, url, "", "")
		}
		if left := objects(t, api+resource); len(left) > 0 {
			t.Fatalf("%s: %v are not gone", resource, left)
		}
	}
}

type objectName struct{ Namespace, Name string }

// objects are the names of what a collection holds.
func objects(t *testing.T, url string) (names []objectName) {
	t.Helper()
	var list struct {
		Items []struct{ Metadata objectName }
	}
	if err := json.Unmarshal(ask(t, http.MethodGet, url, "", ""), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		names = append(names, item.Metadata)
	}
	return names
}

// ask sends a request to the server itself. What became of it shows in what is left.
func ask(t *testing.T, method, url, contentType, body string) []byte {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
