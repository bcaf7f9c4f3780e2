package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// scanned is how many objects the scan reads: more than one page has.
const scanned = 620

// scan runs gateway scan and returns what it prints.
func scan(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command(gateway, append([]string{"scan"}, args...)...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	return out.String()
}

// TestScan: a scan reads the resources that policies match from an API server, page by page, judges each object once
// and changes nothing; the server takes the reports.
func TestScan(t *testing.T) {
	if err := define("testdata/policyreports.yaml"); err != nil {
		t.Fatal(err)
	}
	const namespace = "scanned"
	var wait sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wait.Go(func() {
			for i := range next {
				body := fmt.Sprintf(`{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"w-%d","labels":{"team":"team-%d"}},"spec":{"replicas":%d}}`, i, i%2, i)
				if a := ask(t, http.MethodPost, server.HTTP+"/apis/e2e.example.com/v1/namespaces/"+namespace+"/widgets",
					"application/json", body); a.code != http.StatusCreated {
					t.Error(a.code, a.body)
				}
			}
		})
	}
	for i := range scanned {
		next <- i
	}
	close(next)
	wait.Wait()
	policy := denying(t, `
metadata: {name: sizes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [e2e.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]
  matchConditions: [{name: here, expression: request.namespace == 'scanned'}]
  validations:
  - expression: object.spec.replicas < 600
    message: must be less than 600
`)
	backend := []string{policy, "--backend", server.HTTP, "--dialect", "Kubernetes"}
	for _, as := range []string{"create", "update"} {
		var report struct {
			Objects, Denied, Unjudged, Findings int
			Resources                           map[string]struct{ Denied int }
			Groups                              map[string]struct{ Denied int }
			Notes                               []string
		}
		out := scan(t, append(backend, "--as", as, "--group-by", "label=team", "-o", "json")...)
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		// Other tests may have left objects elsewhere. The server has no kinds of Kubernetes' own.
		if report.Objects < scanned || report.Denied != 20 || report.Findings != 20 || report.Unjudged != 0 ||
			len(report.Notes) > 1 {
			t.Errorf("%s: %+v", as, report)
		}
		if report.Resources["widgets.e2e.example.com"].Denied != 20 || report.Groups["team-1"].Denied != 10 ||
			len(report.Resources) != 1 {
			t.Errorf("%s: %+v", as, report)
		}
	}
	reports := scan(t, append(backend, "--namespace", namespace, "-o", "policyreport")...)
	if out, ok := kubectl(t, server.HTTP, reports, "apply", "--server-side", "--validate=strict", "-f", "-"); !ok {
		t.Fatal(out)
	}
	stored := ask(t, http.MethodGet, server.HTTP+"/apis/wgpolicyk8s.io/v1alpha2/namespaces/"+namespace+
		"/policyreports/gateway-scan", "", "").body
	var kept struct {
		Summary struct{ Pass, Fail int }
		Results []struct{ Result, Policy string }
	}
	if err := json.Unmarshal([]byte(stored), &kept); err != nil {
		t.Fatal(err)
	}
	if kept.Summary.Fail != 20 || kept.Summary.Pass < 600 || len(kept.Results) != 20 ||
		kept.Results[0].Result != "fail" || kept.Results[0].Policy != "sizes" {
		t.Errorf("stored %s", strings.TrimSpace(stored))
	}
}
