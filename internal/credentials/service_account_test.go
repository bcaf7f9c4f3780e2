package credentials

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
)

// The header lines that identify an account.
func TestAuthorization(t *testing.T) {
	dir := t.TempDir()
	token := credentialstest.WriteFile(t, dir, "token", []byte("filed\n"))
	pair := credentialstest.NewAuthority(t, "a").Client(t, "gateway", nil)
	for _, c := range []struct {
		name        string
		config      rest.Config
		want        string
		certificate bool
	}{
		{"nobody", rest.Config{}, "", false},
		{"token", rest.Config{BearerToken: "secret"}, "Authorization: Bearer secret\r\n", false},
		{"token in a file", rest.Config{BearerTokenFile: token}, "Authorization: Bearer filed\r\n", false},
		{"both", rest.Config{BearerToken: "secret", BearerTokenFile: token}, "Authorization: Bearer filed\r\n", false},
		{"password", rest.Config{Username: "a", Password: "b"}, "Authorization: Basic YTpi\r\n", false},
		{"certificate", rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pair.Cert, KeyData: pair.Key}}, "",
			true},
		{
			"acts as another", rest.Config{BearerToken: "secret",
				Impersonate: rest.ImpersonationConfig{UserName: "auditor", UID: "7", Groups: []string{"a", "b"},
					Extra: map[string][]string{"scope": {"c"}}}},
			"Authorization: Bearer secret\r\nImpersonate-Extra-Scope: c\r\nImpersonate-Group: a\r\nImpersonate-Group: b\r\nImpersonate-Uid: 7\r\nImpersonate-User: auditor\r\n", false,
		},
	} {
		a, err := WatchServiceAccount(NewWatcher(Options{}), "the server", &c.config)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := a.AppendAuthorization([]byte("X: y\r\n"))
			if err != nil || string(got) != "X: y\r\n"+c.want || a.HasCertificate() != c.certificate || a.Refused() {
				t.Errorf("%s: %q, %v, certificate %v", c.name, got, err, a.HasCertificate())
			}
		}
		r := &http.Request{Header: http.Header{"X": {"y"}, "Authorization": {"Basic eDp5"}}}
		want := r.Header.Clone()
		for line := range strings.Lines(c.want) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if name == "Authorization" {
				want.Del(name)
			}
			want.Add(name, value)
		}
		if err := a.Authorize(r); err != nil || !reflect.DeepEqual(r.Header, want) {
			t.Errorf("%s: a request has %v, %v; want %v", c.name, r.Header, err, want)
		}
		if shows := a.OwnTLS().GetClientCertificate != nil; shows != c.certificate ||
			a.NobodyTLS().GetClientCertificate != nil || a.NobodyTLS().Certificates != nil {
			t.Errorf("%s: its own connections show a certificate: %v; the connections of others %v", c.name, shows,
				a.NobodyTLS().GetClientCertificate != nil)
		}
	}
	for _, c := range []rest.Config{
		{BearerToken: "a\r\nX-Remote-User: admin"},
		{Impersonate: rest.ImpersonationConfig{UserName: "a\nb"}},
	} {
		if _, err := WatchServiceAccount(NewWatcher(Options{}), "the server", &c); err == nil ||
			!strings.HasSuffix(err.Error(), "must not have control characters") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A plugin is asked when its credentials are needed first, and again after the server has refused them, not for each
// request.
func TestPlugin(t *testing.T) {
	dir := t.TempDir()
	pair := credentialstest.NewAuthority(t, "a").Client(t, "by plugin", nil)
	quoted := func(b []byte) string { return strings.ReplaceAll(string(b), "\n", "\\n") }
	count := filepath.Join(dir, "count")
	script := credentialstest.WriteFile(t, dir, "plugin", []byte(`#!/bin/sh
echo x >> `+count+`
n=$(wc -l < `+count+`)
cat <<'END' | sed s/NUMBER/$n/
{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"token-NUMBER","clientCertificateData":"`+quoted(pair.Cert)+`","clientKeyData":"`+quoted(pair.Key)+`"}}
END
`))
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	plugin := func(command string) *rest.Config {
		return &rest.Config{Host: "https://a",
			ExecProvider: &api.ExecConfig{Command: command, APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: api.IfAvailableExecInteractiveMode}}
	}
	a, err := WatchServiceAccount(NewWatcher(Options{}), "the server", plugin(script))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(count); err == nil {
		t.Error("the plugin was asked before anybody needed it")
	}
	want := func(lines string) {
		t.Helper()
		if got, err := a.AppendAuthorization(nil); err != nil || string(got) != lines {
			t.Errorf("got %q, %v, want %q", got, err, lines)
		}
	}
	want("Authorization: Bearer token-1\r\n")
	want("Authorization: Bearer token-1\r\n")
	if !a.HasCertificate() || a.NobodyTLS().GetClientCertificate != nil {
		t.Error("connections of others may show what the plugin gives")
	}
	shown, err := a.OwnTLS().GetClientCertificate(nil)
	if err != nil || len(shown.Certificate) != 1 {
		t.Errorf("its own connections show %v, %v", shown, err)
	}
	if !a.Refused() {
		t.Error("there is nothing to ask anew")
	}
	want("Authorization: Bearer token-2\r\n")

	a, err = WatchServiceAccount(NewWatcher(Options{}), "the server", plugin(filepath.Join(dir, "none")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.AppendAuthorization(nil); err == nil ||
		!strings.HasPrefix(fmt.Sprint(err), "getting credentials: ") {
		t.Errorf("got %v", err)
	}
}
