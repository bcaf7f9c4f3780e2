package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// KubernetesUpstream is the name of the upstream that is the API server of the cluster in whose pod the gateway runs.
const KubernetesUpstream = "kubernetes"

// Pod is what a pod knows of the API server of its cluster.
type Pod struct {
	// Host and Port are where the API server is; empty outside of pods.
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

// upstream is the API server of the pod's cluster, asked as the pod's service account; nil outside of pods. The error says
// which file of the account is missing.
func (p Pod) upstream() (*Upstream, error) {
	if p.Host == "" || p.Port == "" {
		return nil, nil
	}
	u := defaultUpstream()
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

// Account is the gateway's own account at the backend, and how it knows the backend, in the terms of Kubernetes' clients.
func (u *Upstream) Account() *rest.Config {
	if u.account != nil {
		return u.account
	}
	c := &rest.Config{BearerTokenFile: u.TokenFile}
	if t := u.TLS; t != nil {
		c.TLSClientConfig = rest.TLSClientConfig{
			CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName, Insecure: t.InsecureSkipTLSVerify,
		}
	}
	return c
}

// readKubeconfig takes the server and the account from the kubeconfig of an upstream that names one.
func (u *Upstream) readKubeconfig() error {
	c, err := loadKubeconfig(u.Kubeconfig, u.KubeconfigContext)
	if err != nil {
		return err
	}
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return fmt.Errorf("must name a server by a URL: %w", err)
	}
	endpoint := strings.TrimSuffix(server.String(), "/")
	if problem := endpointProblem(endpoint); problem != "" {
		return fmt.Errorf("must name a server by a URL that the gateway can use: it %s", problem)
	}
	u.account, u.Endpoints = c, []string{endpoint}
	return nil
}

// loadKubeconfig is what kubectl would do with the file, but that the gateway has nobody to ask for a password.
func loadKubeconfig(file, context string) (*rest.Config, error) {
	all, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("may not be read: %w", withoutPath(err))
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

// withoutPath is the cause of an error about a file, which is named anyway.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
