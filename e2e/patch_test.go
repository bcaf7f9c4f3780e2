package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

const (
	jsonPatch  = "application/json-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// stored holds the fields of an object that the tests read.
type stored struct {
	Metadata struct {
		ResourceVersion string
		Labels          map[string]string
		ManagedFields   []struct {
			Manager, Operation string
			FieldsV1           json.RawMessage
		}
	}
	Spec struct {
		Replicas int
		Image    string
	}
}

func read(t *testing.T, a answer) (w stored) {
	t.Helper()
	if a.code/100 != 2 {
		t.Fatalf("answered %d %s", a.code, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// What a policy changes of the result of a patch is stored with it, and who owns the rest is as without the gateway
// (RW-3).
func TestPatchedAndMutated(t *testing.T) {
	through := startGateway(t, "testdata/mutating.yaml")
	item := through.url + widgets + "/mutated"
	owned := func(w stored, manager, operation string) string {
		for _, m := range w.Metadata.ManagedFields {
			if m.Manager == manager && m.Operation == operation {
				return string(m.FieldsV1)
			}
		}
		return ""
	}
	const configuration = "apiVersion: e2e.example.com/v1\nkind: Widget\nmetadata: {name: mutated}\nspec: {replicas: 2, image: a}\n"
	created := read(t, ask(t, "PATCH", item+"?fieldManager=cli", applyPatch, configuration))
	if created.Metadata.Labels["team"] != "a" || created.Spec.Replicas != 2 {
		t.Errorf("applied and created: %+v", created)
	}
	if got, want := owned(created, "cli", "Apply"), `{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec":{"f:image":{},"f:replicas":{}}}`; got != want {
		t.Errorf("who applied owns %s, want %s", got, want)
	}
	again := read(t, ask(t, "PATCH", item+"?fieldManager=cli", applyPatch, configuration))
	if again.Metadata.ResourceVersion != created.Metadata.ResourceVersion {
		t.Errorf("applying the same again changes the object: %+v", again)
	}
	if a := ask(t, "PATCH", item+"?fieldManager=other", applyPatch, "apiVersion: e2e.example.com/v1\nkind: Widget\nmetadata: {name: mutated}\nspec: {image: b}\n"); a.code != http.StatusConflict {
		t.Errorf("another owner is answered %d %s", a.code, a.body)
	}
	for _, c := range []struct{ contentType, body string }{
		{mergePatch, `{"metadata":{"labels":{"team":null}},"spec":{"image":"b"}}`},
		{jsonPatch, `[{"op":"replace","path":"/metadata/labels","value":{}},{"op":"replace","path":"/spec/image","value":"b"}]`},
	} {
		got := read(t, ask(t, "PATCH", item+"?fieldManager=editor", c.contentType, c.body))
		if got.Metadata.Labels["team"] != "a" || got.Spec.Image != "b" {
			t.Errorf("%s: %+v", c.body, got)
		}
		if fields := owned(got, "editor", "Update"); fields != `{"f:spec":{"f:image":{}}}` {
			t.Errorf("%s: the editor owns %s", c.body, fields)
		}
	}
}

// However many write at once, what is stored was admitted in exactly that transition (RW-3).
func TestPatchesRace(t *testing.T) {
	through := []*node{startGateway(t, "testdata/steps.yaml"), startGateway(t, "testdata/steps.yaml")}
	read(t, ask(t, "POST", server.HTTP+widgets, "application/json", `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"raced"},"spec":{"replicas":5}}`))
	stream, err := http.Get(server.HTTP + widgets + "?watch=true&fieldSelector=metadata.name=raced&resourceVersion=0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	var writers sync.WaitGroup
	counts := [600]int{}
	var mu sync.Mutex
	for w := range 6 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range 40 {
				url := through[random.IntN(2)].url + widgets + "/raced"
				replicas := random.IntN(10)
				contentType, body := mergePatch, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
				switch random.IntN(3) {
				case 0:
					contentType, body = jsonPatch, fmt.Sprintf(`[{"op":"replace","path":"/spec/replicas","value":%d}]`,
						replicas)
				case 1:
					contentType, url = applyPatch, url+"?force=true&fieldManager=cli"
					body = fmt.Sprintf(`{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"raced"},"spec":{"replicas":%d}}`, replicas)
				}
				a := ask(t, "PATCH", url, contentType, body)
				mu.Lock()
				counts[a.code]++
				mu.Unlock()
				if a.code != 200 && a.code != 409 && a.code != 422 {
					t.Errorf("%s: answered %d %s", body, a.code, a.body)
				}
			}
		})
	}
	writers.Wait()
	last := read(t, ask(t, "GET", server.HTTP+widgets+"/raced", "", ""))
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	timeout := time.AfterFunc(30*time.Second, func() { _ = stream.Body.Close() })
	defer timeout.Stop()
	before, changes := -1, 0
	for lines.Scan() {
		var event struct{ Object stored }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		now := event.Object.Spec.Replicas
		if before >= 0 && (now-before > 1 || before-now > 1) {
			t.Errorf("from %d to %d was never admitted", before, now)
		}
		before = now
		changes++
		if event.Object.Metadata.ResourceVersion == last.Metadata.ResourceVersion {
			break
		}
	}
	t.Logf("200: %d, 409: %d, 422: %d; %d versions", counts[200], counts[409], counts[422], changes)
	if changes < 10 || counts[422] == 0 {
		t.Errorf("the test shows little: %d versions, %d refused", changes, counts[422])
	}
}
