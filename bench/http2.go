package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
)

// Names of the targets that speak HTTP/2 with their clients: by TLS, and without. The gateway, full admission and
// net/http's proxy speak it if they speak HTTP/1.1.
const (
	nginxH2Target   = "nginx-h2"
	nginxH2CTarget  = "nginx-h2c"
	netH2Target     = "net-http-h2"
	gatewayH2Target = "gateway-h2"
	// The targets of calls of gRPC.
	nginxGRPCTarget   = "nginx-grpc"
	gatewayGRPCTarget = "gateway-grpc"
)

// http2Targets are sent requests of HTTP/2 and nothing else.
var http2Targets = []string{nginxH2Target, nginxH2CTarget, netH2Target, gatewayH2Target, nginxGRPCTarget,
	gatewayGRPCTarget}

// The loads of HTTP/2, sent by h2load on 10 connections with 10 streams each.
const (
	getH2CLoad  = "GET (HTTP/2)"
	postH2CLoad = "POST 1.3 KB (HTTP/2)"
	getH2Load   = "GET (HTTP/2 by TLS)"
	postH2Load  = "POST 1.3 KB (HTTP/2 by TLS)"
	grpcLoad    = "gRPC unary echo of 1.3 KB"
)

// grpcMethod is the path of the call of gRPC.
const grpcMethod = "/bench.Echo/Unary"

func http2Loads() []Load {
	plain := []string{nginxH2CTarget, netTarget, gatewayTarget, admissionTarget}
	secure := []string{nginxH2Target, netH2Target, gatewayH2Target}
	const one = collection + "/" + objectName
	return []Load{
		{Name: getH2CLoad, Method: http.MethodGet, Path: one, IsHTTP2: true, Only: plain},
		{Name: postH2CLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON, IsHTTP2: true, Only: plain},
		{Name: getH2Load, Method: http.MethodGet, Path: one, IsHTTP2: true, Only: secure},
		{Name: postH2Load, Method: http.MethodPost, Path: collection, Body: workloadJSON, IsHTTP2: true, Only: secure},
		{Name: grpcLoad, Method: http.MethodPost, Path: grpcMethod, Body: grpcMessage(),
			ContentType: "application/grpc", IsHTTP2: true,
			Only: []string{nginxGRPCTarget, gatewayGRPCTarget}},
	}
}

// grpcMessage is the object as a message of gRPC: the bytes of one, without compression.
func grpcMessage() []byte {
	n := len(workloadJSON)
	return append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, workloadJSON...)
}

func http2Rows() []Target {
	nginx := func(name, title, config string, isSecure bool, check func(address string) error) Target {
		return Target{
			Name: name, Title: title, Check: check, Packages: []string{"nginx"}, Secure: isSecure, IsHTTP2: true,
			Command: func(m *Machine, listen string) ([]string, error) {
				file, err := m.render(config, listen)
				return []string{"nginx", "-p", m.Dir, "-c", file, "-e", filepath.Join(m.Dir, config+".log")}, err
			},
		}
	}
	rows := []Target{
		nginx(nginxH2Target, "nginx, pass-through", "nginx-h2.conf", true, checkHTTP2("https")),
		nginx(nginxH2CTarget, "nginx, pass-through", "nginx-h2c.conf", false, checkHTTP2("http")),
		{
			Name: netH2Target, Title: "net/http ReverseProxy", Secure: true, IsHTTP2: true, Check: checkHTTP2("https"),
			Command: func(m *Machine, listen string) ([]string, error) {
				return append(m.peer("net-http", listen), "-certificate", m.Certificate), nil
			},
		},
		{
			Name: gatewayH2Target, Title: "**gateway, no policies**", OfGateway: true, Secure: true, IsHTTP2: true,
			Check: checkHTTP2("https"),
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.configured(listen, gatewayH2Target, map[string]any{
					"tls":       map[string]any{"certFile": m.Certificate + ".crt", "keyFile": m.Certificate + ".key"},
					"upstreams": []any{map[string]any{"name": "backend", "endpoints": []string{"http://" + m.Backend}}},
				})
			},
		},
		nginx(nginxGRPCTarget, "nginx, `grpc_pass`", "nginx-grpc.conf", false, checkGRPC),
		{
			Name: gatewayGRPCTarget, Title: "**gateway, no policies**", OfGateway: true, IsHTTP2: true,
			Check: checkGRPC,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.configured(listen, gatewayGRPCTarget, map[string]any{
					"upstreams": []any{map[string]any{"name": "backend",
						"endpoints": []string{"http://" + m.GRPCBackend}, "protocol": "HTTP2"}},
				})
			},
		},
	}
	for i := range rows {
		if rows[i].Ready = collection + "/" + objectName; strings.HasSuffix(rows[i].Name, "-grpc") {
			rows[i].Ready = "/ready"
		}
	}
	return rows
}

// http2Goals bound what HTTP/2 costs beside nginx and the standard library.
func http2Goals() []Goal {
	var all []Goal
	for _, load := range []string{getH2CLoad, postH2CLoad} {
		all = append(all, Goal{Load: load, Target: gatewayTarget, Reference: nginxH2CTarget, AtMost: 1.3},
			Goal{Load: load, Target: gatewayTarget, Reference: netTarget, AtMost: 1})
	}
	for _, load := range []string{getH2Load, postH2Load} {
		all = append(all, Goal{Load: load, Target: gatewayH2Target, Reference: nginxH2Target, AtMost: 1.3},
			Goal{Load: load, Target: gatewayH2Target, Reference: netH2Target, AtMost: 1})
	}
	return append(all,
		Goal{Load: grpcLoad, Target: gatewayGRPCTarget, Reference: nginxGRPCTarget, AtMost: 1.3},
		// Admission adds no more to HTTP/2 than to HTTP/1.1, but for what two runs of one program differ by.
		Goal{Load: postH2CLoad, Target: admissionTarget, Reference: admissionTarget, Of: []string{postLoad},
			Beyond: gatewayTarget, AtMost: 1.05})
}

// configured returns the command of a gateway with a configuration that sends all requests to its one upstream.
func (m *Machine) configured(listen, name string, config map[string]any) ([]string, error) {
	file, err := m.configFile(name, config)
	if err != nil {
		return nil, err
	}
	admin, err := freeAddress()
	return []string{m.Gateway, "serve", "--config", file, "--listen", listen, "--admin", admin}, err
}

// configFile writes such a configuration.
func (m *Machine) configFile(name string, config map[string]any) (file string, err error) {
	config["apiVersion"], config["kind"] = "admission-gateway.io/v1alpha1", "GatewayConfiguration"
	config["routes"] = []any{map[string]any{"pathPrefix": "/", "upstream": "backend"}}
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	file = filepath.Join(m.Dir, name+".json")
	return file, os.WriteFile(file, text, 0o600)
}

// writeCertificate writes the certificate that targets show, and its key, to the folder of the run.
func (m *Machine) writeCertificate() error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("target", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	m.Certificate = filepath.Join(m.Dir, "target")
	if err := os.WriteFile(m.Certificate+".crt", certificate, 0o600); err != nil {
		return err
	}
	return os.WriteFile(m.Certificate+".key", key, 0o600)
}

// http2Client speaks HTTP/2 alone, and accepts every certificate.
func http2Client(timeout time.Duration) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		Protocols: protocols, DisableCompression: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate was made a moment ago
	}}
}

// checkHTTP2 makes sure that a proxy forwards the requests of HTTP/2 unchanged.
func checkHTTP2(scheme string) func(address string) error {
	return func(address string) error {
		for _, l := range http2Loads() {
			if !slices.Contains(l.Only, netTarget) {
				continue
			}
			code, answer, _, err := askHTTP2(scheme+"://"+address, &l)
			want := l.Body
			if want == nil {
				want = workloadJSON
			}
			if err == nil && (code/100 != 2 || !bytes.Equal(answer, want)) {
				err = fmt.Errorf("%s: %d, and the answer is not the object: %s", l.Name, code, answer)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// checkGRPC makes sure that a call has its message as the answer, and the status of success in the trailers.
func checkGRPC(address string) error {
	l := http2Loads()[slices.Index(loadNames(http2Loads()), grpcLoad)]
	code, answer, trailer, err := askHTTP2("http://"+address, &l)
	if err == nil && (code != http.StatusOK || !bytes.Equal(answer, l.Body) || trailer.Get("Grpc-Status") != "0") {
		err = fmt.Errorf("the call is answered %d %q with the trailers %v", code, answer, trailer)
	}
	return err
}

// askHTTP2 sends a request by HTTP/2 and returns what its answer has.
func askHTTP2(base string, l *Load) (code int, answer []byte, trailer http.Header, err error) {
	request, err := http.NewRequest(l.Method, base+l.Path, bytes.NewReader(l.Body))
	if err != nil {
		return 0, nil, nil, err
	}
	for _, h := range l.headers() {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	client := http2Client(10 * time.Second)
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.ProtoMajor != 2 {
		return 0, nil, nil, fmt.Errorf("%s: the answer comes by %s", l.Name, response.Proto)
	}
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, response.Trailer, err
}

// serveGRPCBackend answers every call with its message, and every GET.
func serveGRPCBackend(listener net.Listener) error {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{
		Protocols: protocols, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				return
			}
			message, err := io.ReadAll(r.Body)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(message)
		}),
	}
	return server.Serve(listener)
}
