package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig writes a kubeconfig with one context, as Kubernetes' own library does.
func kubeconfig(t *testing.T, dir string, cluster api.Cluster, user api.AuthInfo) string {
	t.Helper()
	c := api.NewConfig()
	c.Clusters["one"], c.AuthInfos["one"] = &cluster, &user
	c.Contexts["one"] = &api.Context{Cluster: "one", AuthInfo: "one"}
	c.Contexts["other"] = &api.Context{Cluster: "other", AuthInfo: "other"}
	c.Clusters["other"] = &api.Cluster{Server: "https://other.example.com"}
	c.AuthInfos["other"] = &api.AuthInfo{Token: "other"}
	c.CurrentContext = "one"
	file := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// A kubeconfig says here what it says to client-go.
func TestKubeconfig(t *testing.T) {
	for _, c := range []struct {
		name     string
		cluster  api.Cluster
		user     api.AuthInfo
		context  string
		endpoint string
	}{
		{"inline", api.Cluster{Server: "https://10.0.0.1:6443", CertificateAuthorityData: []byte("ca"),
			TLSServerName: "kubernetes"},
			api.AuthInfo{ClientCertificateData: []byte("cert"), ClientKeyData: []byte("key")}, "",
			"https://10.0.0.1:6443"},
		{"files beside it", api.Cluster{Server: "https://a.example.com/", CertificateAuthority: "ca.crt"},
			api.AuthInfo{ClientCertificate: "own.crt", ClientKey: "/etc/own.key"}, "", "https://a.example.com"},
		{"token", api.Cluster{Server: "https://a", InsecureSkipTLSVerify: true}, api.AuthInfo{Token: "secret"}, "",
			"https://a"},
		{"token in a file", api.Cluster{Server: "https://a"}, api.AuthInfo{TokenFile: "token"}, "", "https://a"},
		{"password", api.Cluster{Server: "https://a"}, api.AuthInfo{Username: "a", Password: "b"}, "one", "https://a"},
		{"acts as another", api.Cluster{Server: "https://a"},
			api.AuthInfo{Token: "secret", Impersonate: "auditor", ImpersonateGroups: []string{"readers"}}, "",
			"https://a"},
		{"plugin", api.Cluster{Server: "https://a"},
			api.AuthInfo{Exec: &api.ExecConfig{Command: "get-token", APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: api.NeverExecInteractiveMode}}, "", "https://a"},
		{"plain", api.Cluster{Server: "http://127.0.0.1:8001"}, api.AuthInfo{}, "", "http://127.0.0.1:8001"},
		{"no scheme", api.Cluster{Server: "127.0.0.1:8001"}, api.AuthInfo{}, "", "http://127.0.0.1:8001"},
		{"another context", api.Cluster{Server: "https://a"}, api.AuthInfo{}, "other", "https://other.example.com"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"token", "ca.crt", "own.crt", "own.key"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.user.ClientKey != "" {
				c.user.ClientKey = filepath.Join(dir, "own.key")
			}
			file := kubeconfig(t, dir, c.cluster, c.user)
			want, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
				&clientcmd.ClientConfigLoadingRules{ExplicitPath: file},
				&clientcmd.ConfigOverrides{CurrentContext: c.context}).ClientConfig()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Load("", Flags{Kubeconfig: file, Context: c.context})
			if err != nil {
				t.Fatal(err)
			}
			u := got.Upstreams[0]
			if len(got.Upstreams) != 1 || u.Name != "default" || u.Dialect != Kubernetes ||
				!reflect.DeepEqual(u.Endpoints, []string{c.endpoint}) {
				t.Errorf("got %+v", got.Upstreams)
			}
			if !reflect.DeepEqual(u.ClientConfig(), want) {
				t.Errorf("got\n%+v\nwant\n%+v", u.ClientConfig(), want)
			}
			inFile := filepath.Join(dir, "gateway.yaml")
			text := head + "upstreams: [{name: a, kubeconfig: kubeconfig, kubeconfigContext: '" + c.context +
				"', responseTimeoutSeconds: 7}]\n"
			if err := os.WriteFile(inFile, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err = Load(inFile, Flags{}); err != nil {
				t.Fatal(err)
			}
			if u := got.Upstreams[0]; u.Name != "a" || u.ResponseTimeoutSeconds != 7 || u.Endpoints[0] != c.endpoint ||
				!reflect.DeepEqual(u.ClientConfig(), want) {
				t.Errorf("got\n%+v", u)
			}
		})
	}
}

func TestKubeconfigProblems(t *testing.T) {
	token := api.AuthInfo{Token: "secret"}
	for _, c := range []struct {
		name    string
		cluster api.Cluster
		user    api.AuthInfo
		change  func(file string) error
		flags   Flags
		want    string
	}{
		{"no server", api.Cluster{}, token, nil, Flags{}, "--kubeconfig: the file 'FILE' must be usable: invalid configuration: no server found for cluster \"one\""},
		{"a path", api.Cluster{Server: "https://a/k8s/clusters/c1"}, token, nil, Flags{}, "--kubeconfig: the file 'FILE' must name a server by a URL that the gateway can use: it must end after the host and port, not 'https://a/k8s/clusters/c1'"},
		{"a proxy", api.Cluster{Server: "https://a", ProxyURL: "http://proxy:3128"}, token, nil, Flags{}, "--kubeconfig: the file 'FILE' must not have a `proxy-url`: the gateway reaches backends without proxies"},
		{"a provider", api.Cluster{Server: "https://a"}, api.AuthInfo{AuthProvider: &api.AuthProviderConfig{Name: "gcp"}}, nil, Flags{}, "--kubeconfig: the file 'FILE' must not have an `auth-provider`: Kubernetes' clients have none any more; use `exec`"},
		{"no such context", api.Cluster{Server: "https://a"}, token, nil, Flags{Context: "two"},
			"--kubeconfig: the file 'FILE' must have the context 'two'"},
		{"no file", api.Cluster{}, token, os.Remove, Flags{},
			"--kubeconfig: the file 'FILE' may not be read: no such file or directory"},
		{"empty", api.Cluster{}, token, func(file string) error { return os.WriteFile(file, nil, 0o600) }, Flags{}, "--kubeconfig: the file 'FILE' must have a `current-context` where no context is named"},
		{"a token that is missing", api.Cluster{Server: "https://a"}, api.AuthInfo{TokenFile: "/none/token"}, nil, Flags{}, "--kubeconfig: the file 'FILE' must be usable: open /none/token: no such file or directory"},
		{"beside another backend", api.Cluster{Server: "https://a"}, token, nil, Flags{Upstream: "http://b"},
			"--kubeconfig: must not be given beside --upstream: it names a backend too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := kubeconfig(t, t.TempDir(), c.cluster, c.user)
			if c.change != nil {
				if err := c.change(file); err != nil {
					t.Fatal(err)
				}
			}
			c.flags.Kubeconfig = file
			_, err := Load("", c.flags)
			if err == nil || strings.ReplaceAll(err.Error(), file, "FILE") != c.want {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	if _, err := Load("", Flags{Upstream: "http://a", Context: "a"}); err == nil ||
		err.Error() != "--context: must not be given without --kubeconfig" {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	kubeconfig(t, dir, api.Cluster{Server: "https://a"}, api.AuthInfo{Token: "a", Impersonate: "b"})
	text := head + "identity: {authenticators: [{requestHeader: {addresses: [127.0.0.1]}}]}\nupstreams: [{name: a, kubeconfig: kubeconfig, credentials: Impersonate}]\n"
	if err := os.WriteFile(filepath.Join(dir, "gateway.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(filepath.Join(dir, "gateway.yaml"), Flags{})
	if err == nil || !strings.HasSuffix(err.Error(), "gateway.yaml:4: upstreams[0].credentials: must not be 'Impersonate' where the user of the kubeconfig itself asks to act `as` another") {
		t.Errorf("got %v", err)
	}
}

// In a pod the API server is the backend if nothing else is; client-go makes the account of the
// files there.
func TestInPod(t *testing.T) {
	dir := t.TempDir()
	pod := Pod{Host: "10.96.0.1", Port: "443", Directory: dir}
	problem := func(file string, flags Flags) string {
		_, err := Load(file, flags)
		if err == nil {
			return ""
		}
		return strings.ReplaceAll(err.Error(), dir, "DIR")
	}
	if got := problem("", Flags{Pod: pod}); got != "--upstream: Required value: name the backend; it is not the API server of this cluster, as the pod has no account for it: stat DIR/token: no such file or directory" {
		t.Errorf("without an account: %s", got)
	}
	for _, name := range []string{"token", "ca.crt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := problem("", Flags{Pod: Pod{Directory: dir}}); got != "--upstream: Required value: name the backend's URL, a file with --kubeconfig, or one with --config" {
		t.Errorf("outside of pods: %s", got)
	}
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", file} {
		c, err := Load(file, Flags{Pod: pod})
		if err != nil {
			t.Fatal(err)
		}
		u := c.Upstreams[0]
		if u.Name != KubernetesUpstream || u.Endpoints[0] != "https://10.96.0.1:443" || u.Dialect != Kubernetes ||
			!reflect.DeepEqual(c.Routes, []Route{{PathPrefix: "/", Upstream: KubernetesUpstream}}) {
			t.Errorf("got %+v", c)
		}
		want := &rest.Config{BearerTokenFile: filepath.Join(dir, "token"),
			TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "ca.crt")}}
		if !reflect.DeepEqual(u.ClientConfig(), want) {
			t.Errorf("got %+v", u.ClientConfig())
		}
	}
	// The API server of the cluster may be asked about tokens; another upstream that a flag names instead may not.
	if err := os.WriteFile(file, []byte(head+"identity: {authenticators: [{tokenReview: {upstream: kubernetes}}]}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if got := problem(file, Flags{Pod: pod}); got != "" {
		t.Errorf("tokens that the API server of the cluster reviews: %s", got)
	}
	if got := problem(file, Flags{Pod: pod, Upstream: "http://a"}); got != "DIR/gateway.yaml:3: identity.authenticators[0].tokenReview.upstream: must be the name of one of the `upstreams`, not 'kubernetes'" {
		t.Errorf("tokens that an upstream reviews that a flag replaces: %s", got)
	}
	pod.Host = "fd00::1"
	if c, err := Load("", Flags{Pod: pod}); err != nil || c.Upstreams[0].Endpoints[0] != "https://[fd00::1]:443" {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := Load("", Flags{Pod: pod, Upstream: "http://a"}); err != nil ||
		c.Upstreams[0].Endpoints[0] != "http://a" {
		t.Errorf("got %+v, %v", c, err)
	}
}
