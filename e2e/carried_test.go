package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
)

// A tree is an object as JSON has it.
type tree = map[string]any

func readTree(t *testing.T, text string) (d tree) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return d
}

func written(t *testing.T, d tree) string {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// changedBy returns a copy of an object with a change to its metadata and to all of it.
func changedBy(t *testing.T, d tree, change func(d, metadata tree)) tree {
	t.Helper()
	d = readTree(t, written(t, d))
	change(d, d["metadata"].(tree))
	return d
}

// systemFields are the members of metadata that the server sets.
var systemFields = []string{"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
	"managedFields", "selfLink"}

// TestCarriedFields: of a PUT, validating policies see the object that the server's own validating admission sees, with
// the fields that the server carries over from the stored object: of custom resources and of the server's own kinds.
func TestCarriedFields(t *testing.T) {
	const json = "application/json"
	widgets := "/apis/e2e.example.com/v1/namespaces/carried/widgets"
	create := func(path, body string) {
		if a := ask(t, "POST", server.HTTP+path, json, body); a.code != 201 {
			t.Fatalf("%d %s", a.code, a.body)
		}
	}
	create(widgets, `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"w","labels":{"a":"b"}},"spec":{"image":"a"}}`)
	create(widgets, `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"dying","finalizers":["e2e.example.com/a"]},"spec":{"image":"a"}}`)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	create(definitions, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"carts.carried.example.com"},"spec":{"group":"carried.example.com","scope":"Cluster",`+
		`"names":{"plural":"carts","singular":"cart","kind":"Cart","listKind":"CartList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	defer func() { // the other tests find the groups that they know
		nth := 0
		eventually(t, "the group is gone", func() bool {
			// A change has the server look again, if it gave up on its storage, which was not ready yet.
			nth++
			ask(t, "DELETE", server.HTTP+definitions+"/carts.carried.example.com", "", "")
			ask(t, "PATCH", server.HTTP+definitions+"/carts.carried.example.com", "application/merge-patch+json",
				fmt.Sprintf(`{"metadata":{"annotations":{"nth":"%d"}}}`, nth))
			return !strings.Contains(ask(t, "GET", server.HTTP+"/apis", "", "").body, "carried.example.com")
		})
	}()
	for _, name := range []string{"w", "dying"} {
		if a := ask(t, "PATCH", server.HTTP+widgets+"/"+name+"/status", "application/merge-patch+json",
			`{"status":{"phase":"Ready"}}`); a.code != 200 {
			t.Fatalf("%d %s", a.code, a.body)
		}
	}
	if a := ask(t, "DELETE", server.HTTP+widgets+"/dying", "", ""); a.code != 200 {
		t.Fatalf("%d %s", a.code, a.body)
	}
	eventually(t, "the definition is established", func() bool {
		return strings.Contains(ask(t, "GET", server.HTTP+definitions+"/carts.carried.example.com", "", "").body,
			`"type":"Established"`)
	})
	changes := map[string]func(d, metadata tree){
		"unchanged": func(tree, tree) {},
		"as kubectl shows it": func(_, metadata tree) {
			delete(metadata, "managedFields")
		},
		"as it was written": func(d, metadata tree) {
			for _, name := range systemFields {
				delete(metadata, name)
			}
			delete(d, "status")
		},
		"nulls": func(d, metadata tree) {
			metadata["creationTimestamp"], metadata["managedFields"] = nil, nil
			delete(metadata, "uid")
		},
		"other values": func(d, metadata tree) {
			metadata["creationTimestamp"], metadata["generation"] = "2020-01-01T00:00:00Z", 100
			d["status"] = tree{}
		},
		"a label": func(_, metadata tree) { metadata["labels"] = tree{"x": "y"} },
		"a change": func(d, metadata tree) {
			spec := d["spec"].(tree)
			if versions, is := spec["versions"].([]any); is {
				spec["versions"] = append(versions, maps.Clone(versions[0].(tree)))
				spec["versions"].([]any)[1].(tree)["name"], spec["versions"].([]any)[1].(tree)["storage"] = "v2", false
			} else {
				spec["image"] = "b"
			}
			for _, name := range systemFields {
				delete(metadata, name)
			}
		},
	}
	for gateway, files := range map[string][]string{
		"described": {"testdata/shown.yaml", "testdata/crds.yaml"}, "undescribed": {"testdata/shown.yaml"},
	} {
		through := startGateway(t, files...)
		for _, at := range []struct {
			resource, name, path string
			isOfStatus           bool
		}{
			{"widgets", "w", widgets + "/w", false}, {"widgets", "dying", widgets + "/dying", false},
			{"widgets", "w", widgets + "/w/status", true},
			{"customresourcedefinitions", "carts.carried.example.com", definitions + "/carts.carried.example.com",
				false},
		} {
			stored := readTree(t, ask(t, "GET", server.HTTP+strings.TrimSuffix(at.path, "/status"), "", "").body)
			for name, change := range changes {
				t.Run(gateway+"/"+at.path+"/"+name, func(t *testing.T) {
					body := written(t, changedBy(t, stored, change))
					if a := ask(t, "PUT", server.HTTP+at.path+"?dryRun=All", json, body); a.code != 200 {
						t.Fatalf("%d %s", a.code, a.body)
					}
					want := readTree(t, string(server.Witnessed(at.resource, at.name)))
					a := ask(t, "PUT", through.url+at.path+"?dryRun=All", json, body)
					got := readTree(t, shownIn(t, a.body))
					if !strings.HasPrefix(name, "as ") && name != "unchanged" && name != "nulls" || at.isOfStatus {
						// Who owns what is changed is written down with the time.
						delete(want["metadata"].(tree), "managedFields")
						delete(got["metadata"].(tree), "managedFields")
					}
					if !at.isOfStatus && gateway == "undescribed" && at.resource == "widgets" {
						// Only a definition says that the status is a subresource, and so whether it counts.
						delete(want, "status")
						delete(got, "status")
						if name == "as it was written" || name == "other values" {
							delete(want["metadata"].(tree), "generation")
							delete(got["metadata"].(tree), "generation")
						}
					}
					if !reflect.DeepEqual(got, want) {
						t.Errorf("policies see\n%s\nthe server's admission\n%s\nof\n%s", written(t, got),
							written(t, want), body)
					}
				})
			}
		}
	}
}

// shownIn returns the object that a refusal of the policy shown shows.
func shownIn(t *testing.T, answer string) string {
	t.Helper()
	var refusal struct{ Message string }
	if err := json.Unmarshal([]byte(answer), &refusal); err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(refusal.Message, "denied request: ")
	if !found {
		t.Fatal(answer)
	}
	return shown
}

// TestReplaceUnchanged: `kubectl replace` of an object as kubectl shows it changes nothing for a policy that compares
// the object with the stored one.
func TestReplaceUnchanged(t *testing.T) {
	const path = "/apis/e2e.example.com/v1/namespaces/replaced/widgets"
	if a := ask(t, "POST", server.HTTP+path, "application/json", `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"image":"a"}}`); a.code != 201 {
		t.Fatalf("%d %s", a.code, a.body)
	}
	through := startGateway(t, "testdata/unchanged.yaml", "testdata/crds.yaml")
	shown, ok := kubectl(t, through.url, "", "get", "-n", "replaced", "widget", "w", "-o", "yaml")
	if !ok {
		t.Fatal(shown)
	}
	if out, ok := kubectl(t, through.url, shown, "replace", "-f", "-"); ok ||
		!strings.Contains(out, "nothing changes") {
		t.Errorf("an unchanged object: %s", out)
	}
	if out, ok := kubectl(t, through.url, strings.Replace(shown, "image: a", "image: b", 1), "replace", "-f",
		"-"); !ok {
		t.Errorf("a changed object: %s", out)
	}
}
