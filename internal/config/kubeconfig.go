package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	regular "github.com/admission-gateway/gateway/internal/file"
)

// maxKubeconfig is how large a kubeconfig may be, in bytes.
const maxKubeconfig = 4 << 20

// KubernetesUpstream is the name of the upstream that is the API server of the cluster in whose pod the gateway runs.
const KubernetesUpstream = "kubernetes"

// Pod holds a pod's knowledge of the API server of its cluster.
type Pod struct {
	// Host and Port are the address of the API server; empty outside of pods.
	Host, Port string
	// Directory has the files of the pod's service account. Empty is a pod that the configuration is only meant for.
	Directory string
}

// ThisPod is the pod in which this process runs.
func ThisPod() Pod {
	return Pod{
		Host: os.Getenv("KUBERNETES_SERVICE_HOST"), Port: os.Getenv("KUBERNETES_SERVICE_PORT"),
		Directory: "/var/run/secrets/kubernetes.io/serviceaccount",
	}
}

// upstream is the API server of the pod's cluster, asked as the pod's service account; nil outside of pods. The error
// says which file of the account is missing.
func (p Pod) upstream() (*UpstreamSpec, error) {
	if p.Host == "" || p.Port == "" {
		return nil, nil
	}
	u := defaultUpstream()
	u.Dialect = Kubernetes
	u.Name, u.Endpoints = KubernetesUpstream, []string{"https://" + net.JoinHostPort(p.Host, p.Port)}
	u.TokenFile = filepath.Join(p.Directory, "token")
	u.TLS = &UpstreamTLS{CAFile: filepath.Join(p.Directory, "ca.crt")}
	for _, f := range []string{u.TokenFile, u.TLS.CAFile} {
		if _, err := os.Stat(f); err != nil && p.Directory != "" {
			return nil, err
		}
	}
	return &u, nil
}

// ClientConfig is the gateway's own account at the backend, and how it knows the backend, in the terms of Kubernetes'
// clients.
func (u *UpstreamSpec) ClientConfig() *rest.Config {
	if u.clientConfig != nil {
		return u.clientConfig
	}
	c := &rest.Config{BearerTokenFile: u.TokenFile}
	if t := u.TLS; t != nil {
		c.TLSClientConfig = rest.TLSClientConfig{
			CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
			Insecure: t.InsecureSkipTLSVerify,
		}
	}
	return c
}

// HasAccount reports whether the gateway has an account of its own at the upstream.
func (u *UpstreamSpec) HasAccount() bool {
	c := u.ClientConfig()
	return c.BearerToken != "" || c.BearerTokenFile != "" || c.CertFile != "" || len(c.CertData) > 0 ||
		c.Username != "" ||
		c.ExecProvider != nil || c.AuthProvider != nil
}

// readKubeconfig takes the server and the account from the kubeconfig of an upstream that names one.
func (u *UpstreamSpec) readKubeconfig() error {
	c, err := loadKubeconfig(u.Kubeconfig, u.KubeconfigContext)
	if err != nil {
		return err
	}
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return fmt.Errorf("must name a server by a URL: %w", err)
	}
	endpoint := strings.TrimSuffix(server.String(), "/")
	problem := endpointProblem(endpoint)
	if problem == "" && basePath(endpoint) != "" {
		problem = fmt.Sprintf("must end after the host and port, not '%s'", endpoint)
	}
	if problem != "" {
		return fmt.Errorf("must name a server by a URL that the gateway can use: it %s", problem)
	}
	u.clientConfig, u.Endpoints = c, []string{endpoint}
	return nil
}

// loadKubeconfig reads the file as kubectl does, except that the gateway cannot ask for a password.
func loadKubeconfig(file, context string) (*rest.Config, error) {
	text, _, err := regular.Read(file, maxKubeconfig)
	if err != nil {
		return nil, err
	}
	all, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("may not be read: %w", err)
	}
	for _, cluster := range all.Clusters { // paths in a file are relative to its origin
		cluster.LocationOfOrigin = file
	}
	for _, user := range all.AuthInfos {
		user.LocationOfOrigin = file
	}
	if err := clientcmd.ResolveLocalPaths(all); err != nil {
		return nil, fmt.Errorf("may not be read: %w", err)
	}
	if context == "" {
		context = all.CurrentContext
	}
	switch {
	case context == "":
		return nil, errors.New("must have a `current-context` where no context is named")
	case all.Contexts[context] == nil:
		return nil, fmt.Errorf("must have the context '%s'", context)
	}
	if err := checkFiles(all, all.Contexts[context]); err != nil {
		return nil, err
	}
	c, err := clientcmd.NewNonInteractiveClientConfig(*all, context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	switch {
	case err != nil:
		return nil, fmt.Errorf("must be usable: %w", err)
	case c.Proxy != nil:
		return nil, errors.New("must not have a `proxy-url`: the gateway reaches backends without proxies")
	case c.AuthProvider != nil:
		return nil, errors.New("must not have an `auth-provider`: Kubernetes' clients have none any more; use `exec`")
	}
	return c, nil
}

// checkFiles returns an error about a file of a context that cannot be read. The library would open each of them, and
// wait for the writer of a named pipe. A file that is missing is left to the library, which says so.
func checkFiles(all *api.Config, context *api.Context) error {
	var names []string
	if cluster := all.Clusters[context.Cluster]; cluster != nil {
		names = append(names, cluster.CertificateAuthority)
	}
	if user := all.AuthInfos[context.AuthInfo]; user != nil {
		names = append(names, user.ClientCertificate, user.ClientKey, user.TokenFile)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if err := regular.Check(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("must be usable: the file '%s' %w", name, err)
		}
	}
	return nil
}
