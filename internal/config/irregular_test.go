package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd/api"
)

// A named pipe in place of a configuration, a kubeconfig or a file that a kubeconfig names is refused at once.
func TestIrregularFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const why = "must be a regular file, or a link to one, not a named pipe"
	for _, name := range []string{pipe, pipe + ".yaml"} {
		if name != pipe {
			if err := os.Symlink(pipe, name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Load(name, Flags{}); err == nil || err.Error() != name+": "+why {
			t.Errorf("a configuration: %v", err)
		}
	}
	if _, err := Load("", Flags{Kubeconfig: pipe}); err == nil || err.Error() != "--kubeconfig: the file '"+pipe+"' "+
		why {
		t.Errorf("a kubeconfig: %v", err)
	}
	const server = "https://a"
	for name, c := range map[string]struct {
		cluster api.Cluster
		user    api.AuthInfo
	}{
		"authorities": {api.Cluster{Server: server, CertificateAuthority: pipe}, api.AuthInfo{}},
		"certificate": {api.Cluster{Server: server},
			api.AuthInfo{ClientCertificate: pipe, ClientKeyData: []byte("key")}},
		"key":   {api.Cluster{Server: server}, api.AuthInfo{ClientCertificateData: []byte("cert"), ClientKey: pipe}},
		"token": {api.Cluster{Server: server}, api.AuthInfo{TokenFile: pipe}},
	} {
		file := kubeconfig(t, t.TempDir(), c.cluster, c.user)
		_, err := Load("", Flags{Kubeconfig: file})
		if err == nil || !strings.HasSuffix(err.Error(), "must be usable: the file '"+pipe+"' "+why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
