package cluster

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// logs are the lines that a container has written.
type logs struct {
	mu    sync.Mutex
	lines []line
	rest  []byte // of a line that has no end yet
	// begun is closed when the first line is there.
	begun chan struct{}
}

type line struct {
	at   time.Time
	text []byte
}

// Write implements io.Writer.
func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		end := bytes.IndexByte(l.rest, '\n') + 1
		if end == 0 {
			return len(b), nil
		}
		if len(l.lines) == 0 {
			close(l.begun)
		}
		l.lines = append(l.lines, line{time.Now(), bytes.Clone(l.rest[:end])})
		l.rest = l.rest[end:]
	}
}

// since writes the lines from a time on.
func (l *logs) since(w io.Writer, from time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if line.at.Before(from) {
			continue
		}
		if _, err := w.Write(line.text); err != nil {
			return err
		}
	}
	return nil
}

// serveLogs answers kube-apiserver's questions for the logs of Pods, as the kubelet does.
func (k *kubelet) serveLogs() (*http.Server, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(nodeAddress, nil, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.answerLogs)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
	listener, err := tls.Listen("tcp", kubeletAddress, server.TLSConfig)
	if err != nil {
		return nil, err
	}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func (k *kubelet) answerLogs(w http.ResponseWriter, r *http.Request) {
	var from time.Time
	for name, values := range r.URL.Query() {
		var err error
		switch name {
		case "sinceTime":
			from, err = time.Parse(time.RFC3339, values[0])
		case "timestamps", "previous", "follow":
			if values[0] != "false" {
				http.Error(w, name+" is not served", http.StatusBadRequest)
				return
			}
		default:
			http.Error(w, name+" is not served", http.StatusBadRequest)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	c := k.container(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if c == nil {
		http.Error(w, "there is no such container", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_ = c.logs.since(w, from)
}
