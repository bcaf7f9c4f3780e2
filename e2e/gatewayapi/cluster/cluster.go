// Package cluster runs a small Kubernetes cluster in a network namespace: a real kube-apiserver and
// kube-controller-manager, and one node whose Pods are processes.
package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admission-gateway/gateway/e2e/etcd"
)

// Options are what a cluster is made of.
type Options struct {
	// Dir is a folder for its files.
	Dir string
	// APIServer and ControllerManager are the programs.
	APIServer, ControllerManager string
	// Images are the programs of images, which are named without their tags.
	Images map[string]string
}

// A Cluster is a cluster that runs.
type Cluster struct {
	// Config is how the administrator asks the API server.
	Config *rest.Config

	options    Options
	etcd       *etcd.Store
	server     *Process
	controller *Process
	kubelet    *kubelet
	end        context.CancelFunc
}

// The users of the cluster, whose tokens are their names.
const (
	Administrator = "administrator"
	Gateway       = "gateway"
)

const tokens = Administrator + "," + Administrator + ",0,system:masters\n" + Gateway + "," + Gateway + ",1\n"

const (
	serverPort = "6443"
	serverURL  = "https://" + nodeAddress + ":" + serverPort
)

// Start starts a cluster, in a network of its own.
func Start(options Options) (c *Cluster, err error) {
	c = &Cluster{options: options}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	n, err := openNetwork()
	if err != nil {
		return c, err
	}
	if c.etcd, err = etcd.Start(c.file("etcd")); err != nil {
		return c, err
	}
	if err := c.writeFiles(); err != nil {
		return c, err
	}
	if err := c.StartAPIServer(); err != nil {
		return c, err
	}
	admin, err := c.Kubeconfig(Administrator)
	if err != nil {
		return c, err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", admin); err != nil {
		return c, err
	}
	c.Config.QPS = -1 // no limit
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return c, err
	}
	if c.controller, err = StartProcess(c.file("controller-manager.log"), options.ControllerManager,
		"--kubeconfig="+admin, "--leader-elect=false",
		"--kube-api-qps=200", "--kube-api-burst=200", "--root-ca-file="+c.file("certificates/apiserver.crt"),
		"--controllers=deployment-controller,replicaset-controller,endpointslice-controller,garbage-collector-controller,namespace-controller,"+
			"serviceaccount-controller,root-ca-certificate-publisher-controller"); err != nil {
		return c, err
	}
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	log, err := os.Create(c.file("kubelet.log"))
	if err != nil {
		return c, err
	}
	c.kubelet, err = startKubelet(ctx, client, n, options.Images, c.file("pods"),
		slog.New(slog.NewTextHandler(log, nil)))
	return c, err
}

func (c *Cluster) file(name string) string { return filepath.Join(c.options.Dir, name) }

// writeFiles writes the users, and the key of service accounts.
func (c *Cluster) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(c.file("accounts.key"), text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.file("tokens.csv"), []byte(tokens), 0o600)
}

// StartAPIServer starts the API server, for example after StopAPIServer, and waits until it is ready.
func (c *Cluster) StartAPIServer() error {
	key := c.file("accounts.key")
	var err error
	if c.server, err = StartProcess(c.file("apiserver.log"), c.options.APIServer,
		"--etcd-servers="+c.etcd.URL, "--bind-address="+nodeAddress, "--advertise-address="+nodeAddress,
		"--secure-port="+serverPort, "--cert-dir="+c.file("certificates"),
		"--token-auth-file="+c.file("tokens.csv"), "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://cluster.example", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key,
		"--shutdown-delay-duration=0s"); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			if err := c.server.Err(); err != nil {
				return false, err
			}
			return c.isReady(ctx), nil
		})
}

// isReady reports whether the API server is ready.
func (c *Cluster) isReady(ctx context.Context) bool {
	file, err := c.Kubeconfig(Administrator)
	if err != nil {
		return false
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil { // the certificate is not written yet
		return false
	}
	client, err := kubernetes.NewForConfig(config)
	return err == nil && client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil
}

// StopAPIServer kills the API server.
func (c *Cluster) StopAPIServer() { c.server.Stop() }

// Kubeconfig returns a file with which a user asks the API server.
func (c *Cluster) Kubeconfig(user string) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: serverURL,
		CertificateAuthority: c.file("certificates/apiserver.crt")}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: user}
	config.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: user}
	config.CurrentContext = "cluster"
	file := c.file(user + ".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// Logs returns the ends of the logs of the API server and the controllers, for a test that has failed.
func (c *Cluster) Logs() string {
	return fmt.Sprintf("kube-apiserver:\n%s\nkube-controller-manager:\n%s", c.server.Tail(), c.controller.Tail())
}

// Stop ends all processes.
func (c *Cluster) Stop() {
	if c.end != nil {
		c.end()
	}
	if c.kubelet != nil {
		c.kubelet.stop()
	}
	for _, p := range []*Process{c.controller, c.server} {
		if p != nil {
			p.Stop()
		}
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
}
