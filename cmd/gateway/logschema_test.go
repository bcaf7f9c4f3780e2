package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestLogSchema: in all that a gateway says in JSON, of requests, reloads, failing backends, faults of clients and its
// end, each line begins with the time, the level and the message by the same keys, has no key twice, and a key has
// values of one type.
func TestLogSchema(t *testing.T) {
	t.Parallel()
	_, backend := startBackend(t)
	dir := t.TempDir()
	file, policy := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "policies.yaml")
	configuration := `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
drainSeconds: 0
upstreams:
- {name: first, endpoints: ["http://` + backend + `"], dialect: Plain}
- {name: dead, endpoints: ["http://127.0.0.1:1"], dialect: Plain, circuitBreaker: {consecutiveFailures: 1}}
routes: [{pathPrefix: /dead, upstream: dead}, {pathPrefix: /, upstream: first}]
policies: [policies.yaml]
telemetry: {log: {format: JSON, level: Debug, requests: All}}
`
	limit := strings.Replace(limitPolicy, "requests: 50", "requests: 1", 1)
	testutil.WriteFile(t, file, configuration)
	testutil.WriteFile(t, policy, limit)
	p := startUnready(t, "", "--config", file)
	says := func(message string) {
		t.Helper()
		testutil.Eventually(t, "the log says "+message,
			func() bool { return strings.Contains(p.log.String(), `"msg":"`+message) })
	}
	testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
	for _, path := range []string{"/v2/things", "/v2/things", "/dead/a", "/dead/a"} {
		_ = fetch("http://" + p.listen + path)
	}
	if conn, err := net.Dial("tcp", p.listen); err != nil {
		t.Error(err)
	} else {
		_, _ = conn.Write([]byte("\x16\x03\x01 no HTTP\r\n\r\n"))
		_ = conn.Close()
	}
	testutil.WriteFile(t, policy, strings.Replace(limit, "ClientAddress", "Nobody", 1))
	p.signal(t, syscall.SIGHUP)
	says("the policy files are refused")
	testutil.WriteFile(t, file, configuration+"drainSeconds: 1\n")
	p.signal(t, syscall.SIGHUP)
	says("the configuration is refused")
	p.signal(t, syscall.SIGTERM)
	_ = p.Wait()

	types, messages := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(p.log.String()) {
		keys, values := pairs(t, line)
		if !slices.Equal(keys[:min(3, len(keys))], []string{"time", "level", "msg"}) {
			t.Errorf("a line has the keys %q: %s", keys, line)
			continue
		}
		at, _ := values[0].(string)
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil || !strings.HasSuffix(at, "Z") {
			t.Errorf("the time of a line is %q: %s", at, line)
		}
		if !slices.Contains([]any{"DEBUG", "INFO", "WARN", "ERROR"}, values[1]) {
			t.Errorf("the level of a line is %v: %s", values[1], line)
		}
		message, _ := values[2].(string)
		if message == "" {
			t.Errorf("a line has no message: %s", line)
		}
		messages[message] = true
		seen := map[string]bool{}
		for i, key := range keys {
			if seen[key] {
				t.Errorf("%s stands twice in %s", key, line)
			}
			seen[key] = true
			is := fmt.Sprintf("%T", values[i])
			if was := types[key]; was != "" && was != is {
				t.Errorf("%s is a %s, and was a %s: %s", key, is, was, line)
			}
			types[key] = is
		}
	}
	if len(messages) < 8 || !messages["request"] {
		t.Errorf("the gateway said only %v", messages)
	}
}

// pairs returns the keys of a JSON object in their order, with their values.
func pairs(t *testing.T, line string) (keys []string, values []any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(line)))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		t.Fatalf("%q is no object of JSON: %v", line, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var value any
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		keys, values = append(keys, key.(string)), append(values, value)
	}
	return keys, values
}
