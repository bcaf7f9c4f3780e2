package resource

import (
	"encoding/json"
	"testing"
)

// TestConnectOptions compares what policies on CONNECT see with what kube-apiserver reads from a
// query.
func TestConnectOptions(t *testing.T) {
	registry, err := NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ method, target, want string }{
		{"POST", "/api/v1/namespaces/team-a/pods/web/exec?command=sh&command=-c&command=echo+1%3B+2&container=app&stdin=true&stdout=1&tty=false",
			`{"kind":"PodExecOptions","apiVersion":"v1","stdin":true,"stdout":true,"container":"app","command":["sh","-c","echo 1; 2"]}`},
		{"GET", "/api/v1/namespaces/team-a/pods/web/exec",
			`{"kind":"PodExecOptions","apiVersion":"v1","command":null}`},
		{"GET", "/api/v1/namespaces/team-a/pods/web/exec?stdin&stderr=0&tty=x&%63ontainer=app", `{"kind":"PodExecOptions","apiVersion":"v1","stdin":true,"tty":true,"container":"app","command":null}`},
		{"GET", "/api/v1/namespaces/team-a/pods/web/attach?stdin=TRUE&stdout=False",
			`{"kind":"PodAttachOptions","apiVersion":"v1","stdin":true}`},
		{"POST", "/api/v1/namespaces/team-a/pods/web/portforward?ports=80,443&ports=8080",
			`{"kind":"PodPortForwardOptions","apiVersion":"v1","ports":[80,443,8080]}`},
		{"POST", "/api/v1/namespaces/team-a/pods/web/portforward",
			`{"kind":"PodPortForwardOptions","apiVersion":"v1"}`},
		{"GET", "/api/v1/namespaces/team-a/pods/web/proxy", `{"kind":"PodProxyOptions","apiVersion":"v1"}`},
		{"PUT", "/api/v1/namespaces/team-a/services/https:web:8443/proxy/a%20b/?path=/c&limit=1&limit=2;3", `{"kind":"ServiceProxyOptions","apiVersion":"v1","path":"/a b/"}`},
		{"DELETE", "/api/v1/nodes/n1/proxy/run/team-a/web",
			`{"kind":"NodeProxyOptions","apiVersion":"v1","path":"/run/team-a/web"}`},
		{"HEAD", "/api/v1/nodes/n1/proxy/", `{"kind":"NodeProxyOptions","apiVersion":"v1","path":"/"}`},
		{"GET", "/api/v1/namespaces/team-a/pods/web/log", "null"},
		{"GET", "/apis/example.com/v1/namespaces/team-a/pods/web/exec", "null"},
		{"OPTIONS", "/api/v1/nodes/n1/proxy/", "null"},

		{"PUT", "/api/v1/namespaces/team-a/pods/web/exec", "update is not supported on resources of kind \"pods\""},
		{"GET", "/api/v1/pods/web/exec", "'pods' is namespaced: the path of an object must contain '/namespaces/' and its namespace"},
		{"GET", "/api/v1/namespaces/team-a/pods/web/exec?dryRun=All", "dryRun is not supported"},
		{"GET", "/api/v1/namespaces/team-a/pods/web/exec?container=a&container=b",
			"the query parameter 'container' may not be given more than once"},
		{"GET", "/api/v1/namespaces/team-a/pods/web/exec?tty=true&%74ty=false",
			"the query parameter 'tty' may not be given more than once"},
		{"GET", "/api/v1/namespaces/team-a/pods/web/exec?command=a;b", "the request target must not contain ';'"},
		{"POST", "/api/v1/namespaces/team-a/pods/web/portforward?ports=99999", `cannot convert to []int32: strconv.ParseUint: parsing "99999": value out of range`},
	} {
		info, _, err := registry.Resolve(test.method, []byte(test.target))
		var options any
		if err == nil {
			options, err = info.ConnectOptions()
		}
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			b, err := json.Marshal(options)
			if err != nil {
				t.Fatal(err)
			}
			got = string(b)
			if connects := options != nil; info.Connect != connects || connects && (info.IsWrite() || info.HasBody()) {
				t.Errorf("%s %s: Connect %t, IsWrite %t, HasBody %t", test.method, test.target, info.Connect,
					info.IsWrite(), info.HasBody())
			}
		}
		if got != test.want {
			t.Errorf("%s %s:\n got %s\nwant %s", test.method, test.target, got, test.want)
		}
	}
}
