package resource

import (
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-gateway/gateway/internal/status"
)

// proxySubresource is the subresource whose paths, methods and bodies belong to another server.
const proxySubresource = "proxy"

// connects reports whether the path is one of the subresources of Kubernetes' own kinds that lead to somewhere else: a
// container, a port, or another server.
func (i *Info) connects() bool {
	if i.APIPrefix != "api" || i.Name == "" {
		return false
	}
	switch i.Resource {
	case "pods":
		switch i.Subresource {
		case "exec", "attach", "portforward", proxySubresource:
			return true
		}
	case "services", "nodes":
		return i.Subresource == proxySubresource
	}
	return false
}

// setConnect finds the verb of a method on a path that connects, as Kubernetes' authorizers see it.
func (i *Info) setConnect(m method) error {
	if i.Resource != "nodes" && i.Namespace == "" {
		return status.NoSuchPath("'%s' is namespaced: the path of an object must contain '/namespaces/' and its namespace", i.GroupResource().String())
	}
	if i.Verb = m.verb(true); i.Subresource == proxySubresource || m == methodGet || m == methodPost {
		return nil
	}
	return status.MethodNotAllowed(i.GroupResource(), i.Verb.String())
}

// proxied reports whether the request is one to another server, to which query and body belong.
func (i *Info) proxied() bool { return i.Connect && i.Subresource == proxySubresource }

// ConnectOptions is the object that policies see of a request that [Info.Connect] is set for, made
// of the query as kube-apiserver makes it: a PodExecOptions and its like. It is nil if Kubernetes
// knows no such object, as for the subresources of an aggregated API server. The error is a Status.
func (i *Info) ConnectOptions() (any, error) {
	if !i.Connect || !i.connects() {
		return nil, nil
	}
	kind := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: "v1"} }
	if i.Subresource == proxySubresource {
		switch i.Resource {
		case "pods":
			return &corev1.PodProxyOptions{TypeMeta: kind("PodProxyOptions"), Path: i.subpath()}, nil
		case "services":
			return &corev1.ServiceProxyOptions{TypeMeta: kind("ServiceProxyOptions"), Path: i.subpath()}, nil
		}
		return &corev1.NodeProxyOptions{TypeMeta: kind("NodeProxyOptions"), Path: i.subpath()}, nil
	}
	query, err := url.ParseQuery(i.Query)
	if err != nil {
		return nil, status.BadRequest("the query must be percent-encoded")
	}
	q := parameters{query: query}
	switch i.Subresource {
	case "exec":
		o := &corev1.PodExecOptions{TypeMeta: kind("PodExecOptions"), Command: query["command"]}
		q.stdio(&o.Stdin, &o.Stdout, &o.Stderr, &o.TTY, &o.Container)
		return o, q.err()
	case "attach":
		o := &corev1.PodAttachOptions{TypeMeta: kind("PodAttachOptions")}
		q.stdio(&o.Stdin, &o.Stdout, &o.Stderr, &o.TTY, &o.Container)
		return o, q.err()
	}
	o := &corev1.PodPortForwardOptions{TypeMeta: kind("PodPortForwardOptions")}
	ports := query["ports"]
	q.failed(metav1.Convert_Slice_string_To_Slice_int32(&ports, &o.Ports, nil))
	return o, q.err()
}

// parameters are the parameters of a query, converted as apimachinery does.
type parameters struct {
	query url.Values
	first error
}

func (q *parameters) stdio(stdin, stdout, stderr, tty *bool, container *string) {
	q.flag("stdin", stdin)
	q.flag("stdout", stdout)
	q.flag("stderr", stderr)
	q.flag("tty", tty)
	values := q.single("container")
	q.failed(runtime.Convert_Slice_string_To_string(&values, container, nil))
}

func (q *parameters) flag(name string, to *bool) {
	values := q.single(name)
	q.failed(runtime.Convert_Slice_string_To_bool(&values, to, nil))
}

// single returns the values of a parameter that may be given once: with a second value it would be
// up to each reader which one counts.
func (q *parameters) single(name string) []string {
	values := q.query[name]
	if len(values) > 1 {
		q.failed(fmt.Errorf("the query parameter '%s' may not be given more than once", name))
	}
	return values
}

func (q *parameters) failed(err error) {
	if q.first == nil {
		q.first = err
	}
}

// err is the answer to a query that cannot be converted, as kube-apiserver's.
func (q *parameters) err() error {
	if q.first == nil {
		return nil
	}
	return status.BadRequest("%s", q.first.Error())
}

// subpath is the rest of the path behind the proxy subresource, decoded, with its slash.
func (i *Info) subpath() string {
	segments := 5 // such as /api/v1/nodes/NAME/proxy
	if i.Namespace != "" {
		segments += 2
	}
	rest := i.Path
	for ; segments > 0; segments-- {
		at := strings.IndexByte(rest[1:], '/')
		if at < 0 {
			return ""
		}
		rest = rest[1+at:]
	}
	return decode(rest)
}
