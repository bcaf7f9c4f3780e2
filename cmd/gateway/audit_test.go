package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestAuditWebhook: a kubeconfig names the webhook, its proxy, its authorities and the account, with files beside it.
func TestAuditWebhook(t *testing.T) {
	var got []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Impersonate-User"))
	}))
	defer server.Close()
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		proxied++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer proxy.Close()
	kubeconfig := func(cluster string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
"clusters":[{"name":"a","cluster":{"server":%q,%s}}],"users":[{"name":"a","user":{"tokenFile":"token","as":"auditor"}}]}`, server.URL+"/audit", cluster)
	}
	dir := testutil.WriteFiles(t, map[string]string{
		"token":    "secret\n",
		"ca.crt":   string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		"good":     kubeconfig(`"certificate-authority":"ca.crt"`),
		"proxied":  kubeconfig(fmt.Sprintf(`"certificate-authority":"ca.crt","proxy-url":%q`, proxy.URL)),
		"stranger": kubeconfig(`"tls-server-name":"webhook"`),
		"broken":   kubeconfig(`"certificate-authority":"missing"`),
	})
	open := func(file string) (int, error) {
		w, err := webhookSink(&config.AuditWebhook{Kubeconfig: filepath.Join(dir, file), MaxEvents: 10,
			TimeoutSeconds: 10}, credentials.NewWatcher(credentials.Options{}), nil)
		if err != nil {
			return 0, err
		}
		return w.Sink.Write(t.Context(), []byte("{}\n"))
	}
	if n, err := open("good"); n != 3 || err != nil || len(got) != 1 || got[0] != "/audit Bearer secret auditor" {
		t.Errorf("%d bytes are delivered, %v; the webhook got %q", n, err, got)
	}
	for _, file := range []string{"proxied", "stranger", "broken"} {
		if n, err := open(file); n != 0 || err == nil {
			t.Errorf("%s: %d bytes are delivered, %v", file, n, err)
		}
	}
	if len(got) != 1 || proxied != 1 {
		t.Errorf("the webhook got %q, the proxy was asked %d times", got, proxied)
	}
}
