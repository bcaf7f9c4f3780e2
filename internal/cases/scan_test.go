package cases_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/cases"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/scan"
)

// TestScanAgrees: the writes of recorded cases, replayed by a scan, get the verdicts that the gateway answers them
// with.
func TestScanAgrees(t *testing.T) {
	suites, gateway := suitesDir(t), buildGateway(t)
	sets := []string{"protocol", "gateway-api-cel-standard", "vap-map-lab", "vap-kubescape"}
	if testing.Short() {
		sets = []string{"vap-map-lab"}
	}
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			all, err := cases.Read(filepath.Join(suites, "cases", set+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			all = slices.DeleteFunc(all, func(c cases.Case) bool {
				r := &c.Request
				return r.Method != http.MethodPost || r.Body == nil || len(c.Setup)+len(c.PolicyObjects) > 0
			})
			var admitted, refused int
			for _, group := range byPolicies(all) {
				a, r := replay(t, gateway, suites, group)
				admitted, refused = admitted+a, refused+r
			}
			t.Logf("%d admitted, %d refused", admitted, refused)
			if admitted == 0 || refused == 0 {
				t.Errorf("%d cases were admitted and %d refused: this proves nothing", admitted, refused)
			}
		})
	}
}

// verdicts are the codes of the gateway's judgements of an object.
var verdicts = []int{http.StatusCreated, http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity}

// replay plays cases over HTTP and by a scan, and compares the verdicts.
func replay(t *testing.T, gateway, suites string, group []*cases.Case) (admitted, refused int) {
	t.Helper()
	var current atomic.Pointer[backend.Server]
	current.Store(backend.New(backend.Options{}))
	behind := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.Load().ServeHTTP(w, r) }),
		ReadHeaderTimeout: time.Minute,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = behind.Serve(listener) }() // ends with Close
	t.Cleanup(func() { _ = behind.Close() })
	url := "http://" + listener.Addr().String()
	args := []string{"--config", writeIdentity(t), "--upstream", url, "--dialect", "Plain"}
	var paths []string
	for _, file := range group[0].PolicyFiles {
		paths = append(paths, filepath.Join(suites, file))
		args = append(args, "--policies", filepath.Join(suites, file))
	}
	player := cases.Player{Address: serve(t, gateway, args...), Identify: asFrontProxy, As: &recordedUser}
	set, err := scan.Compile(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("", config.Flags{Upstream: url, Dialect: string(config.Plain)})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range group {
		current.Store(backend.New(backend.Options{}))
		result, err := player.Play(one)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(verdicts, result.Got.Code) {
			continue // it says nothing of the object
		}
		// Each case has namespaces of its own, which a gateway remembers for a while.
		side, end, err := scan.Before(context.Background(), set, c)
		if err != nil {
			t.Fatal(err)
		}
		user := cmp.Or(one.Request.User, &recordedUser)
		r, err := scan.Run(context.Background(), scan.Options{
			New: side, HARs: []string{"-"}, Input: bytes.NewReader(harOf(t, &one.Request)), As: scan.Create, Workers: 1,
			User: identity.User{Name: user.Name, Groups: user.Groups}, List: 10,
		})
		end()
		if err != nil {
			t.Fatal(one.ID, err)
		}
		if r.Objects != 1 {
			t.Errorf("%s: %s %s is not judged: %v", one.ID, one.Request.Method, one.Request.Path, r.Skipped)
			continue
		}
		isRefused := r.Denied+r.Unjudged > 0
		if want := result.Got.Code != http.StatusCreated; isRefused != want {
			t.Errorf("%s: the gateway answers %d (%s); the scan says %+v", one.ID, result.Got.Code, result.Got.Message,
				r.Listed)
		}
		if isRefused {
			refused++
		} else {
			admitted++
		}
	}
	return admitted, refused
}

// harOf records a request.
func harOf(t *testing.T, r *cases.Request) []byte {
	t.Helper()
	entry := map[string]any{"request": map[string]any{
		"method": r.Method, "url": "http://gateway.example.com" + r.Path,
		"postData": map[string]string{"mimeType": r.ContentType, "text": string(r.Body)},
	}}
	text, err := json.Marshal(map[string]any{"log": map[string]any{"entries": []any{entry}}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
