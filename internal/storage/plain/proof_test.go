package plain

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/resource"
)

// TestProof: what was found out about a backend says who compares preconditions, for each method by itself.
func TestProof(t *testing.T) {
	auto := &resource.Resource{Names: resource.Names{Plural: "notes"}}
	auto.Backend.Preconditions = resource.AutoPreconditions
	byGateway := &resource.Resource{Names: resource.Names{Plural: "notes"}}
	byGateway.Backend.Preconditions = resource.GatewayPreconditions
	const (
		unproved = "the gateway compares, because no PUT has shown yet whether the backend does"
		since    = " (since 2026-01-14T09:12:44Z)"
	)
	for _, c := range []struct {
		name       string
		of         *resource.Resource
		method     string
		locksAlone bool
		found      func(*Comparison)
		want       string
	}{
		{"nothing was sent", auto, "PUT", false, func(*Comparison) {}, unproved},
		{"refused, with strong ETags", auto, "PUT", false,
			func(k *Comparison) { k.noteStrong(); k.note("PUT", Compared) },
			"the backend compares, because it refused a PUT that named another version" + since},
		{"refused a PUT, not yet a PATCH", auto, "PATCH", false,
			func(k *Comparison) { k.noteStrong(); k.note("PUT", Compared) },
			"the gateway compares, because no PATCH has shown yet whether the backend does"},
		{"carried out", auto, "PATCH", false, func(k *Comparison) { k.noteStrong(); k.note("PATCH", NotCompared) },
			"the gateway compares, because the backend carried out a PATCH that named another version" + since},
		{"unclear", auto, "PUT", false, func(k *Comparison) { k.noteStrong(); k.note("PUT", Unclear) },
			"the gateway compares, because the backend's answers to a PUT that names another version show nothing" + since},
		{"one probe without a finding", auto, "PUT", false, func(k *Comparison) { k.note("PUT", unknown) }, unproved},
		{"weak ETags", auto, "PUT", false,
			func(k *Comparison) { k.noteStrong(); k.note("PUT", Compared); k.noteETags(Weak) },
			"the gateway compares, because the backend's ETags are weak" + since},
		{"no ETags", auto, "PUT", false, func(k *Comparison) { k.noteETags(None) },
			"the gateway compares, because the backend gives objects without ETags" + since},
		{"reads that vary", auto, "PUT", false, func(k *Comparison) { k.noteETags(None); k.noteVarying(Varying) },
			"the gateway compares, because reads of one object differ although nobody writes it" + since},
		{"another method", auto, "DELETE", false, func(*Comparison) {}, ""},
		{"gateways that lock alone", auto, "PUT", true, func(*Comparison) {}, ""},
		{"always the gateway", byGateway, "PUT", false, func(*Comparison) {}, ""},
		{"no resource", nil, "PUT", false, func(*Comparison) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := &Comparisons{Found: func(schema.GroupResource, string, Finding) {}}
			k := all.Of(schema.GroupResource{Resource: "notes"})
			before := time.Now().Truncate(time.Second)
			c.found(k)
			for _, f := range []*finding{&k.etags, &k.put, &k.patch, &k.reads} {
				if f.get() > asking && f.at().Before(before) {
					t.Errorf("found at %v, before it was sought", f.at())
				}
				f.found.Store(time.Date(2026, 1, 14, 9, 12, 44, 0, time.UTC).Unix())
			}
			p, ok := all.Proof(c.of, c.method, c.locksAlone)
			got := ""
			if ok {
				got = p.String()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if p, ok := (&Comparisons{}).Proof(auto, "PUT", false); !ok || p.String() != unproved {
		t.Errorf("of a resource that no request was about: %s, %v", p, ok)
	}
}

// TestKeep: what is known of a resource is forgotten with the resource.
func TestKeep(t *testing.T) {
	all := &Comparisons{Found: func(schema.GroupResource, string, Finding) {}}
	notes, carts := schema.GroupResource{Resource: "notes"}, schema.GroupResource{Resource: "carts"}
	kept := all.Of(carts)
	kept.note("PUT", Compared)
	all.Of(notes).note("PUT", NotCompared)
	all.Keep(func(r schema.GroupResource) bool { return r == carts })
	if got := all.All(); len(got) != 1 || got[0].Resource != "carts" || got[0].ETags != "Compared" {
		t.Errorf("kept %v", got)
	}
	if all.Of(carts) != kept || all.Of(notes).Known() != unknown {
		t.Errorf("carts are another, or notes are known")
	}
}
