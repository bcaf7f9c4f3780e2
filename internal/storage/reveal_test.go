package storage

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Policies see the namespace, and a generated name when they validate; what is sent is what the client sent, with
// what policies edited in between.
func TestReveal(t *testing.T) {
	pods := resource.Info{IsResource: true, APIPrefix: "api", Version: "v1", Resource: "pods", Namespace: "team-a",
		Verb: resource.VerbCreate}
	token := pods
	token.Resource, token.Subresource, token.Name = "serviceaccounts", "token", "s1"
	named := pods
	named.Name = "p"
	namespaces := resource.Info{IsResource: true, APIPrefix: "api", Version: "v1", Resource: "namespaces",
		Verb: resource.VerbCreate}
	made := regexp.MustCompile(`gen-[a-z0-9]{5}`)
	for _, c := range []struct {
		info resource.Info
		// what policies see, and what is sent of an object that one of them labels
		body, mutating, validating, labeled string
	}{
		{named, ` { "metadata" : { "name":"p" } , "spec":{} } `,
			` { "metadata" : { "name":"p","namespace":"team-a" } , "spec":{} } `,
			` { "metadata" : { "name":"p","namespace":"team-a" } , "spec":{} } `,
			` { "metadata" : { "name":"p","labels":{} } , "spec":{} } `},
		{pods, `{"metadata":{"generateName":"gen-"}}`, `{"metadata":{"generateName":"gen-","namespace":"team-a"}}`,
			`{"metadata":{"generateName":"gen-","namespace":"team-a","name":"gen-*"}}`,
			`{"metadata":{"generateName":"gen-","labels":{}}}`},
		{pods, `{"metadata":{"generateName":"gen-","name":null,"namespace":""}}`,
			`{"metadata":{"generateName":"gen-","name":null,"namespace":"team-a"}}`,
			`{"metadata":{"generateName":"gen-","name":"gen-*","namespace":"team-a"}}`,
			`{"metadata":{"generateName":"gen-","name":null,"namespace":"","labels":{}}}`},
		{pods, `{"spec":{}}`, `{"spec":{},"metadata":{"namespace":"team-a"}}`,
			`{"spec":{},"metadata":{"namespace":"team-a"}}`, `{"spec":{},"metadata":{"labels":{}}}`},
		{pods, `{"metadata":null}`, `{"metadata":{"namespace":"team-a"}}`, `{"metadata":{"namespace":"team-a"}}`,
			`{"metadata":{"labels":{}}}`},
		{token, `{"spec":{}}`, `{"spec":{},"metadata":{"namespace":"team-a"}}`,
			`{"spec":{},"metadata":{"namespace":"team-a","name":"s1"}}`, `{"spec":{},"metadata":{"labels":{}}}`},
		{namespaces, `{"metadata":{"generateName":"gen-"}}`, `{"metadata":{"generateName":"gen-"}}`,
			`{"metadata":{"generateName":"gen-","name":"gen-*"}}`,
			`{"metadata":{"generateName":"gen-","labels":{}}}`},
		{pods, `[]`, `[]`, `[]`, `[]`},
		{pods, `{"metadata":7}`, `{"metadata":7}`, `{"metadata":7}`, `{"metadata":7}`},
	} {
		for _, labels := range []bool{false, true} {
			d, err := document.Parse([]byte(c.body), document.Limits{Bytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			w := &Write{Subject: Subject{Info: c.info}, Exchanges: &Exchanges{},
				Body: Body{Object: d, Source: []byte(c.body)}}
			w.Reveal(false)
			if got := string(d.AppendTo(nil)); got != c.mutating {
				t.Errorf("%s: policies change %s, want %s", c.body, got, c.mutating)
			}
			want := c.body
			if labels {
				if metadata := Metadata(d); metadata.Valid() {
					d.Set(metadata, "labels", []byte("{}"))
				}
				want = c.labeled
			}
			w.Conceal()
			w.Reveal(true)
			if got := made.ReplaceAllString(string(d.AppendTo(nil)), "gen-*"); !labels && got != c.validating {
				t.Errorf("%s: policies validate %s, want %s", c.body, got, c.validating)
			}
			if got := string(w.Content()); got != want {
				t.Errorf("%s: the server gets %s, want %s", c.body, got, want)
			}
		}
	}
}

// TestRevealType: policies see the kind that the API server gives an object which says none, and the server gets what
// the client wrote.
func TestRevealType(t *testing.T) {
	info := resource.Info{IsResource: true, APIPrefix: "api", Version: "v1", Resource: "pods", Subresource: "eviction",
		Name: "p", Verb: resource.VerbCreate}
	served := &discovery.Resource{Kind: schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}}
	for _, c := range []struct{ body, seen string }{
		{` {"deleteOptions":{}} `, ` {"deleteOptions":{},"apiVersion":"policy/v1","kind":"Eviction"} `},
		{`{"kind":"","metadata":{"name":"p"}}`, `{"kind":"Eviction","metadata":{"name":"p"},"apiVersion":"policy/v1"}`},
		{`{"apiVersion":"policy/v1","kind":null}`, `{"apiVersion":"policy/v1","kind":"Eviction"}`},
		{`{"apiVersion":"policy/v1","kind":"Eviction"}`, `{"apiVersion":"policy/v1","kind":"Eviction"}`},
	} {
		d, err := document.Parse([]byte(c.body), document.Limits{Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		w := &Write{Subject: Subject{Info: info, Served: served}, Exchanges: &Exchanges{},
			Body: Body{Object: d, Source: []byte(c.body)}}
		w.Reveal(true)
		if got := string(d.AppendTo(nil)); got != c.seen {
			t.Errorf("%s: policies see %s, want %s", c.body, got, c.seen)
		}
		w.Conceal()
		if got := string(d.AppendTo(nil)); got != c.body {
			t.Errorf("%s: the server gets %s", c.body, got)
		}
	}
}
