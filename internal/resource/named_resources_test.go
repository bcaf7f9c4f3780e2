package resource

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// everything is what apiGroups ["*"] and resources ["*"] reach.
var everything = NamedResources{
	Resources: []schema.GroupResource{{Group: "apps", Resource: "*"}, {Group: "batch", Resource: "*"}},
	Core:      []string{"configmaps", "namespaces", "pods"},
	Dotted:    []string{"*"},
}

func reachingAPI(t testing.TB, reach NamedResources) *Plain {
	r, err := NewRegistry([]*Resource{
		{Group: "shop", Version: "v1", Names: Names{Kind: "User", Plural: "users"}, Envelope: Bare,
			Paths: []string{"/api/v1/users", "/api/v1/users/{name}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewPlain(r, reach, View{LeadsTo: anyPath, Reaches: anyPath})
}

// TestReach: what a wildcard reaches is resolved as at an API server, and all else of an ordinary API is undescribed.
func TestReach(t *testing.T) {
	const untouched = "untouched"
	named := NamedResources{Resources: []schema.GroupResource{{Group: "shop", Resource: "*"},
		{Group: "", Resource: "pods"}}}
	some := NamedResources{Resources: []schema.GroupResource{{Group: "apps", Resource: "deployments"}},
		Core: []string{"pods"}, Dotted: []string{"deployments", "namespaces"}}
	for _, tt := range []struct {
		name, target string
		reach        NamedResources
		want         string // GROUP/VERSION/RESOURCE/SUBRESOURCE namespace/name, an error, or untouched
	}{
		{"a described path", "/api/v1/users/5", everything, "shop/v1/users/ /5"},
		{"a group of Kubernetes", "/apis/apps/v1/namespaces/x/deployments/y", everything, "apps/v1/deployments/ x/y"},
		{"a subresource", "/apis/apps/v1/namespaces/x/deployments/y/scale", everything,
			"apps/v1/deployments/scale x/y"},
		{"a group with a dot", "/apis/shop.example.com/v1/queues/q", everything, "shop.example.com/v1/queues/ /q"},
		{"any version", "/apis/shop.example.com/2026-01-01/queues", everything,
			"shop.example.com/2026-01-01/queues/ /"},
		{"pods", "/api/v1/namespaces/x/pods/y/exec", everything, "/v1/pods/exec x/y"},
		{"a namespace", "/api/v1/namespaces/x", everything, "/v1/namespaces/ x/x"},
		{"the end of a namespace", "/api/v1/namespaces/x/finalize", everything, "/v1/namespaces/finalize x/x"},
		{"a group without a dot", "/apis/shop/v1/queues", everything, untouched},
		{"a group without a dot that is named", "/apis/shop/v1/queues", named, "shop/v1/queues/ /"},
		{"another group", "/apis/apps/v1/deployments", named, untouched},
		{"a group with a dot that is not named", "/apis/a.example.com/v1/b", named, untouched},
		{"a resource that is no Kubernetes' own", "/api/v1/orders/5", everything, untouched},
		{"another version of the core", "/api/v2/pods", everything, untouched},
		{"another version of a resource that is named", "/api/v2/pods", named, "/v2/pods/ /"},
		{"something in a namespace that is no Kubernetes' own", "/api/v1/namespaces/x/orders", everything, untouched},
		{"discovery", "/apis/apps/v1", everything, untouched},
		{"discovery of a group with a dot", "/apis/shop.example.com/v1", everything, untouched},
		{"no group", "/apis/my_shop.example.com/v1/queues", everything, untouched},
		{"another prefix", "/v1/apis/apps/v1/deployments", everything, untouched},
		{"some of all groups", "/apis/shop.example.com/v1/namespaces/x/deployments", some,
			"shop.example.com/v1/deployments/ x/"},
		{"another of all groups", "/apis/shop.example.com/v1/statefulsets", some, untouched},
		{"another in a namespace of a group with a dot", "/apis/shop.example.com/v1/namespaces/x/statefulsets", some,
			untouched},
		{"another in a group with a namespace", "/apis/apps/v1/statefulsets", some, untouched},
		{"case", "/apis/Shop.Example.COM/v1/queues", everything, "404"},
		{"case of a version", "/apis/shop.example.com/V1/queues", everything, "400"},
		{"case of the prefix", "/APIS/shop.example.com/v1/queues", everything, "404"},
		{"case of what is Kubernetes' own", "/api/v1/Pods", everything, "404"},
		{"a slash at the end", "/apis/shop.example.com/v1/queues/", everything, "400"},
		{"an encoding", "/apis/shop%2Eexample.com/v1/queues", everything, "400"},
		{"an encoded slash", "/apis/shop.example.com%2Fv1/queues", everything, "400"},
		{"a parameter", "/apis/shop.example.com;a=b/v1/queues", everything, "400"},
		{"dots", "/apis/x/../shop.example.com/v1/queues", everything, "400"},
		{"old watches", "/apis/shop.example.com/v1/watch/queues", everything, "400"},
		{"no reach", "/apis/apps/v1/deployments", NamedResources{}, untouched},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info, r, err := reachingAPI(t, tt.reach).Resolve("GET", []byte(tt.target))
			var got string
			switch {
			case err != nil:
				got = strconv.Itoa(int(statusOf(t, err).Code))
			case info.IsUndescribed:
				got = untouched
				if info.Path != tt.target || info.IsResource || r != nil {
					t.Errorf("got %+v", info)
				}
			default:
				got = info.Group + "/" + info.Version + "/" + info.Resource + "/" + info.Subresource + " " +
					info.Namespace + "/" + info.Name
			}
			if got != tt.want {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

// reachedPaths are the paths that everything describes.
var reachedPaths = regexp.MustCompile(`^(/api/v1/users(/[^/]+)?|/apis/(apps|batch|[a-z0-9-]+(\.[a-z0-9-]+)+)/[^/]+/[^/]+(/[^/]+)*|` +
	`/api/v1/(namespaces/[^/]+/)?(pods|configmaps)(/[^/]+)*|/api/v1/namespaces(/[^/]+(/(status|finalize)(/[^/]+)*)?)?)$`)

// TestReachSpellings: no spelling of what a wildcard reaches passes as undescribed, whichever server reads it.
func TestReachSpellings(t *testing.T) {
	api := reachingAPI(t, everything)
	paths := []string{"/apis/apps/v1/namespaces/x/deployments/y", "/apis/shop.example.com/v1/queues",
		"/api/v1/namespaces/x/pods/y/exec",
		"/api/v1/namespaces/x", "/api/v1/namespaces/x/finalize", "/api/v1/configmaps",
		"/apis/a.b/v1/namespaces/n/c/d/status"}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	reached := 0
	for range 60_000 {
		p := paths[r.IntN(len(paths))]
		for range 1 + r.IntN(3) {
			p = spell(r, p)
		}
		if p[0] != '/' {
			continue
		}
		info, _, err := api.Resolve("POST", []byte(p))
		for server, read := range servers {
			if !reachedPaths.MatchString(read(p)) {
				continue
			}
			reached++
			if err == nil && !info.IsResource {
				t.Fatalf("%s reads %q as %q, which a wildcard reaches, and it passes as undescribed (seed %d)", server, p, read(p), seed)
			}
		}
	}
	if reached < 10_000 {
		t.Errorf("only %d spellings reach a described path", reached)
	}
}
