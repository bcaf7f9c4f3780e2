package cases_test

import (
	"bytes"
	"flag"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/cases"
	"github.com/admission-gateway/gateway/internal/testutil"
)

var update = flag.Bool("update", false, "record the agreement with the recorded answers where it has risen")

// TestAgreement plays recorded cases through the gateway's binary over a plain backend, with the policy files that the
// real API server had, and holds the agreement with its answers: what agreed once has to agree for ever, and what
// differs has to be named, on purpose (testdata/deliberate.txt) or not yet (testdata/SET.txt).
func TestAgreement(t *testing.T) {
	suites := suitesDir(t)
	gateway := buildGateway(t)
	deliberate, err := cases.ReadDeliberate("testdata/deliberate.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	sets := []string{"protocol", "gateway-api-examples", "gateway-api-cel-standard", "json-test-suite",
		"json-patch-tests", "vap-map-lab", "vap-kubescape"}
	if testing.Short() {
		sets = sampled
	}
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			all, err := cases.Read(filepath.Join(suites, "cases", set+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var results []*cases.Result
			for _, group := range byPolicies(all) {
				results = append(results, play(t, gateway, suites, group)...)
			}
			for _, r := range results {
				known[r.Case.ID] = true
			}
			compareWithLedger(t, set, results, deliberate,
				"How far the gateway over a plain backend agrees with the recorded answers of "+set+
					".jsonl. The numbers may only rise;\n"+
					"go test ./internal/cases -run TestAgreement -update records it. Open cases say what they wait for.")
		})
	}
	for _, d := range deliberate {
		if !known[d.ID] && !t.Failed() && !testing.Short() {
			t.Errorf("testdata/deliberate.txt: there is no case %s", d.ID)
		}
	}
}

// sampled are the sets that are played if tests have to be short.
var sampled = []string{"protocol", "vap-map-lab"}

// compareWithLedger compares results with the set's ledger, and records the agreement with -update
// unless it has fallen; the comment stands at the ledger's head.
func compareWithLedger(t *testing.T, set string, results []*cases.Result, deliberate []cases.Deliberate,
	comment string) {
	t.Helper()
	file := filepath.Join("testdata", set+".txt")
	ledger, err := cases.ReadLedger(file)
	if err != nil {
		t.Fatal(err)
	}
	now, problems := ledger.Compare(results, deliberate)
	t.Log(now.Summary(set, results, deliberate))
	for _, measure := range cases.Measures() {
		if *update && now.Agree[measure] < ledger.Agree[measure] {
			t.Fatalf("%d cases agreed by %s, %d do now: nothing is recorded", ledger.Agree[measure], measure,
				now.Agree[measure])
		}
	}
	if *update {
		if err := now.Write(file, comment); err != nil {
			t.Fatal(err)
		}
		_, problems = now.Compare(results, deliberate)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// byPolicies groups cases that were answered under the same policy files, in their order.
func byPolicies(all []cases.Case) [][]*cases.Case {
	var groups [][]*cases.Case
	for i := range all {
		c := &all[i]
		at := slices.IndexFunc(groups,
			func(g []*cases.Case) bool { return slices.Equal(g[0].PolicyFiles, c.PolicyFiles) })
		if at < 0 {
			at, groups = len(groups), append(groups, nil)
		}
		groups[at] = append(groups[at], c)
	}
	return groups
}

// play starts a gateway with the policy files of the cases and plays each over an empty backend.
func play(t *testing.T, gateway, suites string, group []*cases.Case) []*cases.Result {
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

	args := []string{"--config", writeIdentity(t), "--upstream", "http://" + listener.Addr().String(), "--dialect",
		"Plain"}
	for _, file := range group[0].PolicyFiles {
		args = append(args, "--policies", filepath.Join(suites, file))
	}
	player := cases.Player{Address: serve(t, gateway, args...), Identify: asFrontProxy, As: &recordedUser}
	var results []*cases.Result
	for _, c := range group {
		current.Store(backend.New(backend.Options{}))
		result, err := player.Play(c)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
	}
	return results
}

// recordedUser sent the requests that name no user.
var recordedUser = cases.User{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}}

// writeIdentity writes a configuration by which the gateway believes asFrontProxy.
func writeIdentity(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	const content = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n" +
		"identity: {authenticators: [{requestHeader: {addresses: [127.0.0.0/8]}}]}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// asFrontProxy passes the user to the gateway.
func asFrontProxy(u cases.User) []cases.Header {
	all := []cases.Header{{Name: "X-Remote-User", Value: u.Name}}
	for _, g := range u.Groups {
		all = append(all, cases.Header{Name: "X-Remote-Group", Value: g})
	}
	return all
}

// serve runs "gateway serve" until the test ends and returns its address once it is ready.
func serve(t *testing.T, gateway string, args ...string) string {
	t.Helper()
	listen, admin := testutil.FreeAddress(t), testutil.FreeAddress(t)
	cmd := exec.Command(gateway, append([]string{"serve", "--listen", listen, "--admin", admin}, args...)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the output says why
		close(exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
		if t.Failed() {
			t.Logf("the gateway printed:\n%s", tail(output.String(), 4000))
		}
	})
	client := http.Client{Timeout: time.Second}
	testutil.Eventually(t, "the gateway is ready", func() bool {
		select {
		case <-exited:
			t.Fatalf("the gateway does not start: %s", output.String())
		default:
		}
		response, err := client.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return listen
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// buildGateway builds the binary that users run.
func buildGateway(t *testing.T) string {
	t.Helper()
	statSources(t)
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "gateway-cases-"); built.err != nil {
			return
		}
		built.err = testutil.BuildProgram(filepath.Join(built.dir, "gateway"), rootDir(t), "./cmd/gateway")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "gateway")
}

// built is the gateway's program, which the first test that needs it builds, and the folder that TestMain removes.
var built struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // it is in the system's folder for temporary files
	}
	os.Exit(code)
}

// statSources looks at every file that the gateway is built from. The go command repeats the result of a test whose
// inputs are the same, and of a program that the test builds it only knows the files that the test itself looks at.
func statSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(rootDir(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func rootDir(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// suitesDir returns the folder of the recorded cases; without it the test is skipped.
func suitesDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "shared", "suites")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(rootDir(t), dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "cases")); err != nil {
		t.Skipf("no recorded cases in %s: set SUITES_DIR to the folder that holds them", strings.TrimSuffix(dir, "/"))
	}
	return dir
}
