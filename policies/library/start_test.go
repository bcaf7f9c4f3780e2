package library_test

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/library"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestStart: what a team begins with in front of an API server refuses a pod that has its host in its hands, in each
// kind that has one, or warns of it; and its tests pass.
func TestStart(t *testing.T) {
	const pod = `{"metadata":{"name":"p"},"spec":{"hostPID":true,"hostNetwork":true,"volumes":[{"name":"a","hostPath":{"path":"/"}}],
		"containers":[{"name":"a","image":"a","securityContext":{"privileged":true}}]}}`
	fields := []string{"spec.hostPID", "spec.hostNetwork", "spec.volumes[0].hostPath",
		"spec.containers[0].securityContext.privileged", "spec.containers[0].image"}
	lookup := &admissiontest.Lookup{}
	lookup.Add("{apiVersion: v1, kind: ConfigMap, metadata: {name: registries, namespace: platform}, data: {ours: registry.example.com/}}")
	for _, warns := range []bool{false, true} {
		files, err := library.Start{IsKubernetes: true, Warns: warns}.Files()
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for name, data := range files {
			texts[name] = string(data)
		}
		root := filepath.Join(testutil.WriteFiles(t, texts), "policies")
		set := policiestest.LoadFiles(t, root)
		for i := range holders {
			h := &holders[i]
			object := h.of([]byte(pod))
			wrong := strings.Join(judge(t, set, lookup, h.info(resource.VerbCreate, ""), admission.Create, object),
				"\n")
			for _, kind := range []string{`""`, `"Pod"`} { // which the client says
				disguised := strings.Replace(string(object), strconv.Quote(h.kind), kind, 1)
				if again := strings.Join(judge(t, set, lookup, h.info(resource.VerbCreate, ""), admission.Create,
					[]byte(disguised)), "\n"); again != wrong {
					t.Errorf("a %s that says to be a %s: wrong is\n%s\nand of itself\n%s", h.kind, kind, again, wrong)
				}
			}
			if warns {
				if wrong != "" {
					t.Errorf("a set that warns refuses a %s:\n%s", h.kind, wrong)
				}
				continue
			}
			for _, field := range fields {
				if !strings.Contains("\n"+wrong, "\n"+h.path+field+": ") {
					t.Errorf("a %s: nothing is said of %s%s:\n%s", h.kind, h.path, field, wrong)
				}
			}
		}
		s, err := policytest.Run(context.Background(), policytest.Options{Paths: []string{root}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Results {
			if r.Outcome != policytest.Passed {
				t.Errorf("%s:%d: %s: %s", r.File, r.Line, r.ID, strings.Join(r.Problems, "; "))
			}
		}
	}
}

// TestMetadataOfTemplates: what the policies about metadata refuse in a Pod they refuse in the template that Pods are
// made of too, in each kind that has one, with the field there. They ask the same of the Jobs that a CronJob makes.
func TestMetadataOfTemplates(t *testing.T) {
	set := policiestest.LoadFiles(t, "hygiene/reserved-labels.yaml", "hygiene/finalizers.yaml", "teams/team-label.yaml",
		"teams/team-of-namespace.yaml")
	lookup := &admissiontest.Lookup{}
	lookup.Add("{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {team: shop}}}")
	for _, c := range []struct {
		metadata string
		wrong    []string // fields of the Pod
	}{
		{`{"name":"p","labels":{"app":"a","team":"shop"},"finalizers":["example.com/cleanup"]}`, nil},
		{`{"name":"p","labels":{"team":"shop","batch.kubernetes.io/job-name":"p"}}`, nil},
		{`{"name":"p","labels":{"team":"other"}}`, []string{"metadata.labels[team]"}},
		{`{"name":"p"}`, []string{"metadata.labels[team]"}},
		{`{"name":"p","labels":{"team":"shop","node.kubernetes.io/a":"b"},"finalizers":["mine"]}`, []string{
			"metadata.finalizers", "metadata.finalizers[0]", "metadata.labels", "metadata.labels[node.kubernetes.io/a]",
		}},
	} {
		for i := range holders {
			h := &holders[i]
			object := h.of([]byte(`{"metadata":` + c.metadata + `,"spec":{"containers":[{"name":"a","image":"a"}]}}`))
			want := below(h.path, c.wrong)
			if h.path != "" {
				want = append(want, "metadata.labels[team]")
			}
			if h.kind == "CronJob" {
				want = append(want, "spec.jobTemplate.metadata.labels[team]")
			}
			var got []string
			for _, wrong := range judge(t, set, lookup, h.info(resource.VerbCreate, ""), admission.Create, object) {
				field, _, _ := strings.Cut(wrong, ": ")
				got = append(got, field)
			}
			slices.Sort(want)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("a %s with %s: wrong are %q, want %q", h.kind, c.metadata, got, want)
			}
		}
	}
}

// TestStartPins: the workflow installs the version of the gateway that wrote it, and names actions by their commits.
func TestStartPins(t *testing.T) {
	for version, want := range map[string]string{
		"v1.4.0":       "cmd/gateway@v1.4.0\n",
		"v1.4.0-rc.1":  "cmd/gateway@v1.4.0-rc.1\n",
		"v1.4.0+dirty": "cmd/gateway@latest\n",
		"devel":        "cmd/gateway@latest\n",
	} {
		files, err := library.Start{Version: version}.Files()
		if err != nil {
			t.Fatal(err)
		}
		workflow := string(files[".github/workflows/policies.yml"])
		if !strings.Contains(workflow, want) {
			t.Errorf("%s: want %q in\n%s", version, want, workflow)
		}
		uses := regexp.MustCompile(`(?m)uses: .*$`).FindAllString(workflow, -1)
		for _, use := range uses {
			if !regexp.MustCompile(`@[0-9a-f]{40} # v\d`).MatchString(use) {
				t.Errorf("%s is not pinned", use)
			}
		}
		if len(uses) == 0 {
			t.Error("the workflow uses no action")
		}
	}
}
