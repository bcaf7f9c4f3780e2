package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Cluster says what the gateway does in a cluster beside what it does for the API server behind it.
type Cluster struct {
	// Watch makes the gateway an ingress controller: it routes by the objects of Gateway API, and the Ingresses, of a
	// cluster, and writes their status. If it is nil, the gateway routes by its files alone.
	Watch *ClusterWatch `json:"watch"`
}

// ClusterWatch says which objects of a cluster the gateway routes by, and how clients reach it.
type ClusterWatch struct {
	// Kubeconfig is a file that names the API server and the gateway's account there, in the context of the name
	// KubeconfigContext or else its current one; if it is empty, the API server is that of the cluster in whose Pod
	// the gateway runs. In a configuration file, a path is relative to its directory.
	Kubeconfig        string `json:"kubeconfig"`
	KubeconfigContext string `json:"kubeconfigContext"`
	// ControllerName is that of the GatewayClasses and IngressClasses that count.
	ControllerName string `json:"controllerName"`
	// GatewayClass is the name of the only GatewayClass that counts; empty is all of the controller's.
	GatewayClass string `json:"gatewayClass"`
	// Namespaces are those whose objects are watched; empty is all.
	Namespaces []string `json:"namespaces"`
	// Addresses are those that Gateways may ask for, as addresses or CIDR blocks: each Gateway listens on addresses of
	// its own. If it is empty, all Gateways listen on all addresses of the machine, and their listeners must differ.
	Addresses []Prefix `json:"addresses"`
	// PublishedAddresses are the addresses, or names of hosts, by which clients reach the gateway if Addresses is
	// empty.
	PublishedAddresses []string `json:"publishedAddresses"`
	// Service is the Service, as namespace/name, whose addresses are published if PublishedAddresses is empty too.
	Service string `json:"service"`
	// Lease is the Lease by which gateways agree which of them writes statuses.
	Lease ClusterLease `json:"lease"`

	clientConfig *rest.Config
}

// ClusterLease names a Lease.
type ClusterLease struct {
	// Namespace is its namespace; empty is that of the Pod, or else 'default'.
	Namespace string `json:"namespace"`
	// Name is its name.
	Name string `json:"name"`
}

func defaultClusterWatch() ClusterWatch {
	return ClusterWatch{ControllerName: "admission-gateway.io/gateway", Lease: ClusterLease{Name: "admission-gateway"}}
}

// ClientConfig is the API server and the gateway's account there, in the terms of Kubernetes' clients.
func (w *ClusterWatch) ClientConfig() *rest.Config { return w.clientConfig }

// reach reads what says how the API server is reached.
func (w *ClusterWatch) reach(pod Pod) (err error) {
	if w.Kubeconfig != "" {
		w.clientConfig, err = loadKubeconfig(w.Kubeconfig, w.KubeconfigContext)
		return err
	}
	if pod.Host == "" || pod.Port == "" {
		return errors.New("must name a file: the gateway does not run in a Pod whose account it could use")
	}
	w.clientConfig = &rest.Config{
		Host: "https://" + net.JoinHostPort(pod.Host, pod.Port), BearerTokenFile: filepath.Join(pod.Directory, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(pod.Directory, "ca.crt")},
	}
	return nil
}

// watch checks what is said of a cluster.
func (v *validator) watch(path string, w *ClusterWatch) {
	if w == nil {
		return
	}
	if w.KubeconfigContext != "" && w.Kubeconfig == "" {
		v.check(path+".kubeconfigContext", "must not be given without `kubeconfig`")
	}
	domain, name, found := strings.Cut(w.ControllerName, "/")
	if !found || name == "" || len(validation.IsDNS1123Subdomain(domain)) > 0 {
		v.check(path+".controllerName",
			fmt.Sprintf("must be a domain and a path, such as 'example.com/gateway', not '%s'", w.ControllerName))
	}
	if w.GatewayClass != "" && len(validation.IsDNS1123Subdomain(w.GatewayClass)) > 0 {
		v.check(path+".gatewayClass", fmt.Sprintf("must be the name of a GatewayClass, not '%s'", w.GatewayClass))
	}
	for i, n := range w.Namespaces {
		v.check(fmt.Sprintf("%s.namespaces[%d]", path, i), namespaceProblem(n))
	}
	for i, a := range w.PublishedAddresses {
		if net.ParseIP(a) == nil && len(validation.IsDNS1123Subdomain(a)) > 0 {
			v.check(fmt.Sprintf("%s.publishedAddresses[%d]", path, i),
				fmt.Sprintf("must be an address or the name of a host, not '%s'", a))
		}
	}
	if w.Service != "" {
		namespace, name, found := strings.Cut(w.Service, "/")
		if !found || namespaceProblem(namespace) != "" || len(validation.IsDNS1123Label(name)) > 0 {
			v.check(path+".service", fmt.Sprintf("must be the namespace and the name of a Service, such as 'gateway/gateway', not '%s'", w.Service))
		}
	}
	if w.Lease.Namespace != "" {
		v.check(path+".lease.namespace", namespaceProblem(w.Lease.Namespace))
	}
	if len(validation.IsDNS1123Subdomain(w.Lease.Name)) > 0 {
		v.check(path+".lease.name", fmt.Sprintf("must be the name of a Lease, not '%s'", w.Lease.Name))
	}
}

func namespaceProblem(name string) string {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Sprintf("must be the name of a namespace, not '%s'", name)
	}
	return ""
}
