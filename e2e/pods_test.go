package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/proxy"
	apiproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/exec"
)

// startPods serves one pod, web in team-a: as a kubelet does, by the streaming server of container runtimes, and in
// front of that with the handlers of kube-apiserver, which speak WebSocket to clients and SPDY to kubelets. It returns
// the URL.
func startPods(t testing.TB) string {
	t.Helper()
	kubelet := httptest.NewServer(http.HandlerFunc(serveKubelet))
	t.Cleanup(kubelet.Close)
	location := func(path string, r *http.Request) *url.URL {
		u, err := url.Parse(kubelet.URL)
		if err != nil {
			t.Error(err)
			return &url.URL{}
		}
		u.Path, u.RawQuery = path, kubeletQuery(r.URL.Query()).Encode()
		return u
	}
	const pod = "/api/v1/namespaces/team-a/pods/web"
	mux := http.NewServeMux()
	for _, sub := range []string{"exec", "attach"} {
		mux.HandleFunc(pod+"/"+sub, func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			to := location("/"+sub, r)
			translator := apiproxy.NewStreamTranslatorHandler(to, http.DefaultTransport, 0, apiproxy.Options{
				Stdin: q.Get("stdin") == "true", Stdout: q.Get("stdout") == "true", Stderr: q.Get("stderr") == "true",
				Tty: q.Get("tty") == "true"})
			apiproxy.NewTranslatingHandler(upgrading(to), translator,
				wsstream.IsWebSocketRequestWithStreamCloseProtocol).ServeHTTP(w, r)
		})
	}
	mux.HandleFunc(pod+"/portforward", func(w http.ResponseWriter, r *http.Request) {
		handler := upgrading(location("/portforward", r))
		apiproxy.NewTranslatingHandler(handler, apiproxy.NewTunnelingHandler(handler),
			wsstream.IsWebSocketRequestWithTunnelingProtocol).ServeHTTP(w, r)
	})
	mux.HandleFunc(pod+"/log", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 { // each line is there before the next one is written
			_, _ = fmt.Fprintf(w, "line %d\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc(pod, answerJSON(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"team-a"},
		"spec":{"containers":[{"name":"app","stdin":true}]},"status":{"phase":"Running"}}`))
	mux.HandleFunc("/api", answerJSON(`{"kind":"APIVersions","versions":["v1"]}`))
	mux.HandleFunc("/apis", answerJSON(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
	mux.HandleFunc("/api/v1", answerJSON(`{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list"],"shortNames":["po"]}]}`))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func answerJSON(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// upgrading is how kube-apiserver leads a request on that asks for an upgrade.
func upgrading(to *url.URL) http.Handler {
	h := proxy.NewUpgradeAwareHandler(to, http.DefaultTransport, false, true, failing{})
	h.UseLocationHost = true
	return h
}

type failing struct{}

func (failing) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// kubeletQuery is the query that a kubelet is asked with.
func kubeletQuery(of url.Values) url.Values {
	q := url.Values{"command": of["command"]}
	for from, to := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
		if of.Get(from) == "true" {
			q.Set(to, "1")
		}
	}
	return q
}

func serveKubelet(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/portforward" {
		portforward.ServePortForward(w, r, container{}, "web", "", &portforward.V4Options{}, time.Hour, time.Minute,
			portforward.SupportedProtocols)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	protocols := []string{"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"}
	if r.URL.Path == "/attach" {
		remotecommand.ServeAttach(w, r, container{}, "web", "", "app", options, time.Hour, time.Minute, protocols)
		return
	}
	remotecommand.ServeExec(w, r, container{}, "web", "", "app", r.URL.Query()["command"], options, time.Hour,
		time.Minute, protocols)
}

// container is the one container of the pod.
type container struct{}

// ExecInContainer knows three commands: cat, fail and size, which waits for the size of the terminal.
func (container) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out,
	err io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	switch strings.Join(command, " ") {
	case "cat":
		_, e := io.Copy(out, in)
		return e
	case "fail":
		_, _ = io.WriteString(err, "it failed\n")
		return exec.CodeExitError{Err: fmt.Errorf("failed"), Code: 3}
	case "size":
		select {
		case size := <-resize:
			_, e := fmt.Fprintf(out, "%d x %d", size.Width, size.Height)
			return e
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("no such command: %q", command)
}

// AttachContainer echoes.
func (container) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize) error {
	_, err := io.Copy(out, in)
	return err
}

// PortForward echoes, on any port.
func (container) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	defer func() { _ = stream.Close() }()
	_, err := io.Copy(stream, stream)
	return err
}

// optionsOf are the parameters of a query as clients write them.
func optionsOf(o *corev1.PodExecOptions) url.Values {
	q, err := scheme.ParameterCodec.EncodeParameters(o, corev1.SchemeGroupVersion)
	if err != nil {
		panic(err)
	}
	return q
}
