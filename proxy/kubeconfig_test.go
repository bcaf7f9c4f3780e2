package proxy

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
)

// A kubeconfig says which server is the backend, how it is known and who the gateway is there, and nothing of who
// clients are.
func TestKubeconfigBackend(t *testing.T) {
	authority := credentialstest.NewAuthority(t, "ours")
	pair := authority.Client(t, "gateway", nil)
	dir := t.TempDir()
	cert, key := pair.Write(t, dir, "own")
	for _, c := range []struct {
		name string
		user api.AuthInfo
		want string
	}{
		{"inline certificate", api.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key},
			"/own by ours/gateway, , as "},
		{"certificate in files", api.AuthInfo{ClientCertificate: cert, ClientKey: key}, "/own by ours/gateway, , as "},
		{"token", api.AuthInfo{Token: "secret"}, "/own by nobody, Bearer secret, as "},
		{"token in a file", api.AuthInfo{TokenFile: credentialstest.WriteFile(t, dir, "token", []byte("filed"))},
			"/own by nobody, Bearer filed, as "},
		{"password", api.AuthInfo{Username: "a", Password: "b"}, "/own by nobody, Basic YTpi, as "},
		{"acts as another", api.AuthInfo{Token: "secret", Impersonate: "auditor"},
			"/own by nobody, Bearer secret, as auditor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			behind := newSecureBackend(t, authority.Server(t, []string{"api.internal"}))
			s := serveKubeconfig(t, api.Cluster{Server: behind.url, CertificateAuthorityData: authority.PEM,
				TLSServerName: "api.internal"}, c.user)
			if code, _ := s.client(t, "/c"); code != 200 {
				t.Errorf("a client is answered %d", code)
			}
			if got := behind.take(); got != "/c by nobody, Bearer client, as " {
				t.Errorf("a client's request came as %s", got)
			}
			if _, err := s.itself("/own"); err != nil {
				t.Fatal(err)
			}
			if got := behind.take(); got != c.want {
				t.Errorf("the gateway's own came as %s, want %s", got, c.want)
			}
		})
	}
}

// A plugin is asked for new credentials after the server has refused its earlier ones; without a
// plugin the log says why there are none.
func TestKubeconfigPlugin(t *testing.T) {
	authority := credentialstest.NewAuthority(t, "ours")
	behind := newSecureBackend(t, authority.Server(t, []string{"127.0.0.1"}))
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	script := credentialstest.WriteFile(t, dir, "plugin", []byte("#!/bin/sh\necho x >> "+count+"\n"+
		`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"token-'$(wc -l < `+count+`)'"}}'`+"\n"))
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	cluster := api.Cluster{Server: behind.url, CertificateAuthorityData: authority.PEM}
	plugin := &api.ExecConfig{Command: script, APIVersion: "client.authentication.k8s.io/v1",
		InteractiveMode: api.NeverExecInteractiveMode}
	s := serveKubeconfig(t, cluster, api.AuthInfo{Exec: plugin})
	for _, step := range []struct {
		answers int
		want    string
	}{{0, "token-1"}, {401, "token-1"}, {0, "token-2"}, {0, "token-2"}} {
		behind.set(func() { behind.answers = step.answers })
		if _, err := s.itself("/own"); err != nil {
			t.Fatal(err)
		}
		if got := behind.take(); got != "/own by nobody, Bearer "+step.want+", as " {
			t.Errorf("came as %s, want %s", got, step.want)
		}
	}
	plugin.Command = filepath.Join(dir, "none")
	s = serveKubeconfig(t, cluster, api.AuthInfo{Exec: plugin})
	if _, err := s.itself("/own"); err != errNoAccount {
		t.Errorf("got %v", err)
	}
	if got := behind.take(); got != "" ||
		!strings.Contains(s.log.String(), plugin.Command+": no such file or directory") {
		t.Errorf("the backend got %s; the log:\n%s", got, s.log)
	}
}

func serveKubeconfig(t *testing.T, cluster api.Cluster, user api.AuthInfo) *served {
	t.Helper()
	k := api.NewConfig()
	k.Clusters["a"], k.AuthInfos["a"], k.Contexts["a"], k.CurrentContext = &cluster, &user,
		&api.Context{Cluster: "a", AuthInfo: "a"}, "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("", config.Flags{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	return serveConfig(t, c)
}

// In a pod the API server is asked as the pod's service account, by the token that is valid now.
func TestPodBackend(t *testing.T) {
	authority := credentialstest.NewAuthority(t, "cluster")
	behind := newSecureBackend(t, authority.Server(t, []string{"127.0.0.1"}))
	dir := t.TempDir()
	credentialstest.WriteFile(t, dir, "ca.crt", authority.PEM)
	credentialstest.WriteFile(t, dir, "token", []byte("hour-1"))
	host, port, err := net.SplitHostPort(strings.TrimPrefix(behind.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("", config.Flags{Pod: config.Pod{Host: host, Port: port, Directory: dir}})
	if err != nil {
		t.Fatal(err)
	}
	s := serveConfig(t, c)
	for _, token := range []string{"hour-1", "hour-2"} {
		credentialstest.WriteFile(t, dir, "token", []byte(token))
		s.files.Reload()
		if code, _ := s.client(t, "/c"); code != 200 {
			t.Errorf("a client is answered %d", code)
		}
		if _, err := s.itself("/own"); err != nil {
			t.Fatal(err)
		}
		if got := behind.take(); got != "/c by nobody, Bearer client, as \n/own by nobody, Bearer "+token+", as " {
			t.Errorf("came as %s", got)
		}
	}
}
