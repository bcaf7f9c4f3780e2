package mutate

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// TestRecordedLoading plays what a real kube-apiserver said of policies that it took or refused.
func TestRecordedLoading(t *testing.T) {
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "suites")
	}
	f, err := os.Open(filepath.Join(dir, "cases", "policy-load.jsonl"))
	if err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	played := 0
	for lines.Scan() {
		var c struct {
			ID      string `json:"id"`
			Request struct {
				Body admissionv1.MutatingAdmissionPolicy `json:"body"`
			} `json:"request"`
			Expect struct {
				Causes []struct{ Field, Message string } `json:"causes"`
			} `json:"expect"`
		}
		if !strings.Contains(lines.Text(), `"load/map/`) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		played++
		_, errs := Compiler{}.Compile(&c.Request.Body)
		var got, want []string
		for _, err := range errs {
			got = append(got, err.Field+": "+err.ErrorBody())
		}
		for _, cause := range c.Expect.Causes {
			want = append(want, cause.Field+": "+cause.Message)
		}
		if !sameSet(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.ID, got, want)
		}
	}
	if played < 8 {
		t.Errorf("%d cases", played)
	}
}

// sameSet compares without regard to order.
func sameSet(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
