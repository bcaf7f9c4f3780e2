package main

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
)

// Names of the targets in front of a backend that speaks TLS, as every Kubernetes API server does.
const (
	secureDirectTarget  = "direct-tls"
	secureNginxTarget   = "nginx-tls"
	secureGatewayTarget = "gateway-tls"
)

// secureTargets are sent the secure loads and nothing else.
var secureTargets = []string{secureDirectTarget, secureNginxTarget, secureGatewayTarget}

// The loads of large answers in chunks. The form of the answer is in the query.
const (
	listLoad     = "LIST of 1000 objects (TLS backend)"
	gzipLoad     = "LIST of 1000 objects (TLS backend; gzip)"
	protobufLoad = "LIST of 1000 objects (TLS backend; protobuf)"
	eventLoad    = "event of 100 KB (TLS backend)"
)

// secureLoads returns what is asked of a backend that speaks TLS.
func secureLoads() []Load {
	load := func(name, query string) Load {
		return Load{Name: name, Method: http.MethodGet, Path: collection + query, Only: secureTargets}
	}
	return []Load{
		load(listLoad, "?form=json"), load(gzipLoad, "?form=gzip"), load(protobufLoad, "?form=protobuf"),
		load(eventLoad, "?watch=true&timeoutSeconds=1&form=event"),
	}
}

// forms returns the answers of the backend that speaks TLS by the form that the query asks for: as API servers give
// them, without a length. A watch ends after its event.
func forms() (map[string][]byte, error) {
	objects := bytes.TrimSuffix(bytes.Repeat(append(bytes.Clone(bytes.TrimSpace(workloadJSON)), ','), 1000),
		[]byte(","))
	list := fmt.Appendf(nil, `{"apiVersion":"bench.example.com/v1","kind":"WorkloadList","metadata":{"resourceVersion":"1"},"items":[%s]}`, objects)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, 4) // as kube-apiserver
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(list); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	proto, err := protobufList()
	if err != nil {
		return nil, err
	}
	event := fmt.Appendf(nil, `{"type":"MODIFIED","object":{"apiVersion":"bench.example.com/v1","kind":"Workload","metadata":{"name":"checkout","annotations":{"a":%q}}}}`+"\n",
		strings.Repeat("x", 100_000))
	return map[string][]byte{
		"json":     chunkedAnswer("Content-Type: application/json", list),
		"gzip":     chunkedAnswer("Content-Type: application/json\r\nContent-Encoding: gzip", packed.Bytes()),
		"protobuf": chunkedAnswer("Content-Type: application/vnd.kubernetes.protobuf", proto),
		"event":    chunkedAnswer("Content-Type: application/json", event),
	}, nil
}

// protobufList is a list of 1,000 ConfigMaps of the size of the benchmark's object.
func protobufList() ([]byte, error) {
	list := corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range 1000 {
		list.Items = append(list.Items, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("checkout-%d", i), Namespace: "team-a"},
			Data:       map[string]string{"object": string(workloadJSON)},
		})
	}
	raw, err := list.Marshal()
	if err != nil {
		return nil, err
	}
	whole, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
		Raw: raw}).Marshal()
	return append([]byte("k8s\x00"), whole...), err
}

// chunkedAnswer is an answer in chunks of 128 KiB, the size of the writes of kube-apiserver's encoders.
func chunkedAnswer(lines string, body []byte) []byte {
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n", lines)
	for len(body) > 0 {
		n := min(len(body), 128<<10)
		answer = append(append(fmt.Appendf(answer, "%x\r\n", n), body[:n]...), "\r\n"...)
		body = body[n:]
	}
	return append(answer, "0\r\n\r\n"...)
}

// serveSecureBackend is serveBackend by TLS, with the further forms of answers.
func serveSecureBackend(listener net.Listener) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("backend", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	answers, err := forms()
	if err != nil {
		return err
	}
	return answerConnections(
		tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}),
		answers)
}

// formOf returns the form that the request line of a GET asks for, empty for the object itself.
func formOf(line []byte) string {
	_, form, _ := bytes.Cut(line, []byte("form="))
	form, _, _ = bytes.Cut(form, []byte(" "))
	return string(form)
}

// checkForms makes sure that a server passes the large answers on unchanged, in few chunks.
func checkForms(base string) error {
	answers, err := forms()
	if err != nil {
		return err
	}
	client := insecureClient(10 * time.Second)
	defer client.CloseIdleConnections()
	for _, l := range secureLoads() {
		answer, err := client.Get(base + l.Path)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		want := answers[formOf([]byte(l.Path+" "))]
		if !bytes.Equal(chunkedAnswer(headLines(answer.Header), got), want) {
			return fmt.Errorf("%s: the answer of %d bytes is not the backend's", l.Name, len(got))
		}
	}
	return nil
}

// headLines are the lines of a head that describe its body.
func headLines(h http.Header) string {
	lines := "Content-Type: " + h.Get("Content-Type")
	if coding := h.Get("Content-Encoding"); coding != "" {
		lines += "\r\nContent-Encoding: " + coding
	}
	return lines
}

// insecureClient accepts every certificate, and answers as they come.
func insecureClient(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		//nolint:gosec // the backend made its certificate a moment ago
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
	}}
}
