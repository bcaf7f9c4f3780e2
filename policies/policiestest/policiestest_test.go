package policiestest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

const object = `apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: team-a}
`

// recorder is a test that notes how it fails.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, a ...any) {
	r.failure = fmt.Sprintf(format, a...)
	runtime.Goexit()
}

func TestLoad(t *testing.T) {
	set := Load(t, fmt.Sprintf(object, "a"), "", fmt.Sprintf(object, "b"))
	for _, name := range []string{"a", "b"} {
		if _, found := set.Object("", "ConfigMap", "team-a", name); !found {
			t.Errorf("the set has no ConfigMap %q", name)
		}
	}
	if _, found := Load(t).Object("", "ConfigMap", "team-a", "a"); found {
		t.Error("a set of no files has a ConfigMap")
	}
}

// A test whose policies do not compile ends, and gives the position and the reason.
func TestLoadFails(t *testing.T) {
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		Load(r, fmt.Sprintf(object, "a"), "kind: nonsense\n")
	}()
	<-done
	if !strings.Contains(r.failure, "2.yaml:1: ") {
		t.Errorf("the failure is %q", r.failure)
	}
}
