package backend

import "testing"

func TestParsePath(t *testing.T) {
	none := target{}
	for path, want := range map[string]target{
		"/api/v1/namespaces":                {collection: "/api/v1/namespaces"},
		"/api/v1/namespaces/team-a":         {collection: "/api/v1/namespaces", name: "team-a"},
		"/api/v1/namespaces/team-a/pods":    {collection: "/api/v1/pods", namespace: "team-a"},
		"/api/v1/namespaces/team-a/pods/p1": {collection: "/api/v1/pods", namespace: "team-a", name: "p1"},
		"/api/v1/pods":                      {collection: "/api/v1/pods"},
		"/api/v1/nodes/n1":                  {collection: "/api/v1/nodes", name: "n1"},
		"/apis/example.com/v1/widgets":      {collection: "/apis/example.com/v1/widgets"},
		"/apis/example.com/v1/widgets/w1":   {collection: "/apis/example.com/v1/widgets", name: "w1"},
		"/apis/example.com/v1/namespaces/team-a/widgets": {collection: "/apis/example.com/v1/widgets",
			namespace: "team-a"},
		"/apis/example.com/v1/namespaces/team-a/widgets/w1": {collection: "/apis/example.com/v1/widgets",
			namespace: "team-a", name: "w1"},
		"/v2/orders":                   {collection: "/v2/orders"},
		"/v2/orders/o1":                {collection: "/v2/orders", name: "o1"},
		"/v2/orders/o1/lines":          {collection: "/v2/orders/o1/lines"},
		"/v2/orders/o1/lines/1":        {collection: "/v2/orders/o1/lines", name: "1"},
		"/v2beta1/orders":              {collection: "/v2beta1/orders"},
		"/v1alpha3/orders/o1":          {collection: "/v1alpha3/orders", name: "o1"},
		"/orders":                      {collection: "/orders"},
		"/orders/o1":                   {collection: "/orders", name: "o1"},
		"/vehicles/v1":                 {collection: "/vehicles", name: "v1"},
		"/v2gamma1/orders":             {collection: "/v2gamma1", name: "orders"},
		"/orders/%6f1":                 {collection: "/orders", name: "%6f1"}, // as sent, nothing is decoded
		"/":                            none,
		"":                             none,
		"orders":                       none,
		"/v2":                          none,
		"/v2/":                         none,
		"/orders/":                     none,
		"//orders":                     none,
		"/orders//o1":                  none,
		"http://h/orders":              none,
		"/api":                         none,
		"/api/v1":                      none,
		"/apis":                        none,
		"/apis/example.com":            none,
		"/apis/example.com/v1":         none,
		"/api/v1/pods/p1/status":       none,
		"/api/v1/namespaces/a/p/n/log": none,
	} {
		got, ok := parsePath(path)
		if got != want || ok != (want != none) {
			t.Errorf("%q is %+v, %v; want %+v", path, got, ok, want)
		}
	}
}
