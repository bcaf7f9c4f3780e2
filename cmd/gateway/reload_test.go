package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// configured is a gateway with a configuration that changes.
type configured struct {
	*process
	file string
}

// put writes the configuration at once, as the kubelet does.
func (c *configured) put(t *testing.T, text string) {
	t.Helper()
	testutil.WriteFile(t, c.file+".new", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+text)
	if err := os.Rename(c.file+".new", c.file); err != nil {
		t.Fatal(err)
	}
}

// shown returns what the gateway says of its configuration, without times.
func (c *configured) shown(t *testing.T) admin.Configuration {
	t.Helper()
	var s admin.Status
	if err := json.Unmarshal([]byte(c.get("/status").body), &s); err != nil {
		t.Fatal(err)
	}
	return s.Configuration
}

// hashOf is the hash of the configuration file as a gateway with its flags has it.
func (c *configured) hashOf(t *testing.T) string {
	t.Helper()
	read, err := config.Load(c.file, config.Flags{Listen: c.listen, Admin: c.admin})
	if err != nil {
		t.Fatal(err)
	}
	return read.Hash()
}

// TestReloadConfiguration: a changed configuration file comes into force whole, without a signal or by SIGHUP. One with
// errors, or that the policy files or a backend do not fit, changes nothing. Each key that needs a restart is named.
func TestReloadConfiguration(t *testing.T) {
	t.Parallel()
	first, firstAddress := startBackend(t)
	second, secondAddress := startBackend(t)
	for name, api := range map[string]*backend.Server{"first": first, "second": second} {
		if _, err := api.Put("/v2/notes/n", []byte(`{"name":"`+name+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	policy := filepath.Join(dir, "policies.yaml")
	testutil.WriteFile(t, policy, limitPolicy)
	c := &configured{file: filepath.Join(dir, "gateway.yaml")}
	base := "drainSeconds: 0\npolicies: [policies.yaml]\n"
	upstream := func(address string) string {
		return fmt.Sprintf("upstreams: [{name: notes, endpoints: ['http://%s'], dialect: Plain}]\n", address)
	}
	c.put(t, base+upstream(firstAddress))
	c.process = startProcess(t, testutil.FreeAddress(t), testutil.FreeAddress(t), "--config", c.file)
	testutil.Eventually(t, "ready", func() bool { return c.get("/readyz").code == 200 })
	serves := func(name string) bool {
		return strings.Contains(fetch("http://"+c.listen+"/v2/notes/n").body, `"name":"`+name+`"`)
	}
	readiness := func() string {
		line := regexp.MustCompile(`(?m)^.*configuration.*$`).FindString(c.get("/readyz?verbose").body)
		return strings.ReplaceAll(line, dir+"/", "")
	}
	expect := func(when string, hash string, needsRestart []string, failure []string, ready string) {
		t.Helper()
		got := c.shown(t)
		var findings []string
		if got.LastFailure != nil {
			for _, f := range got.LastFailure.Findings {
				findings = append(findings, strings.ReplaceAll(f, dir+"/", ""))
			}
		}
		if got.Hash != hash || !reflect.DeepEqual(got.NeedsRestart, needsRestart) ||
			!reflect.DeepEqual(findings, failure) {
			t.Errorf("%s: the status says %+v with the findings %q, want the hash %s, %q and %q", when, got, findings,
				hash, needsRestart, failure)
		}
		if line := readiness(); line != ready {
			t.Errorf("%s: /readyz?verbose has the line %q, want %q", when, line, ready)
		}
		if metrics := c.get("/metrics").body; !strings.Contains(metrics, `gateway_config_info{hash="`+hash+`"} 1`) ||
			strings.Count(metrics, "\ngateway_config_restart_needed{") != len(needsRestart) {
			t.Errorf("%s: the metrics are\n%s", when, metrics)
		}
	}
	if !serves("first") {
		t.Fatal("the first backend is not served")
	}
	expect("at the start", c.hashOf(t), nil, nil, "[+]configuration ok")

	c.put(t, base+upstream(secondAddress))
	testutil.Eventually(t, "the second backend is served", func() bool { return serves("second") })
	hash := c.hashOf(t)
	testutil.Eventually(t, "shown", func() bool { return c.shown(t).Hash == hash })
	expect("with another upstream", hash, nil, nil, "[+]configuration ok")

	c.put(t, base+"drainSeconds: 1\n"+upstream(firstAddress))
	testutil.Eventually(t, "refused", func() bool { return c.shown(t).LastFailure != nil })
	expect("a key twice", hash, nil, []string{"gateway.yaml:5: drainSeconds: must not be set twice; it is set on line 3 already"},
		"[+]configuration ok, but: the file is refused: gateway.yaml:5: drainSeconds: must not be set twice; it is set on line 3 already")
	if !serves("second") {
		t.Error("a file with errors has changed what is served")
	}

	c.put(t, base+upstream(firstAddress)+"limits: {connections: 10}\ntelemetry: {log: {format: JSON, requests: All}}\n")
	testutil.Eventually(t, "the first backend is served again", func() bool { return serves("first") })
	testutil.Eventually(t, "shown", func() bool { return c.shown(t).NeedsRestart != nil })
	expect("keys that need a restart", c.shown(t).Hash, []string{"limits.connections", "telemetry.log.format"}, nil,
		"[+]configuration ok, but: a restart is needed for limits.connections, telemetry.log.format")
	testutil.Eventually(t, "all requests have lines", func() bool {
		return serves("first") && strings.Contains(c.log.String(), "url.path=/v2/notes/n http.response.status_code=200")
	})
	for _, line := range []string{
		`level=WARN msg="a changed setting of the configuration needs a restart of the gateway" key=limits.connections cause="the listener is open"`,
		`level=WARN msg="a changed setting of the configuration needs a restart of the gateway" key=telemetry.log.format cause="a log has lines of one format"`,
	} {
		if !strings.Contains(c.log.String(), line) {
			t.Errorf("the log has no line\n%s\nbut\n%s", line, c.log.String())
		}
	}

	// Nothing of a configuration comes into force that policy files do not fit. It does when they do.
	testutil.WriteFile(t, policy, strings.Replace(limitPolicy, "requests: 50", "requests: 50\n  upstream: orders", 1))
	testutil.Eventually(t, "the policies are refused", func() bool {
		return strings.Contains(c.get("/policies").body, "lastFailure")
	})
	before := c.shown(t).Hash
	c.put(t, base+upstream(secondAddress))
	testutil.Eventually(t, "refused for the policies", func() bool { return c.shown(t).LastFailure != nil })
	if got := c.shown(t); got.Hash != before || !strings.Contains(strings.Join(got.LastFailure.Findings, "\n"),
		"policies.yaml:8:3: spec.upstream: must be the name of an upstream") || !serves("first") {
		t.Errorf("the status says %+v, and the first backend is served: %t", got, serves("first"))
	}
	testutil.WriteFile(t, policy, limitPolicy)
	c.signal(t, syscall.SIGHUP)
	testutil.Eventually(t, "the second backend is served again", func() bool { return serves("second") })
	testutil.Eventually(t, "shown", func() bool { return c.shown(t).LastFailure == nil })
	expect("at the end", c.hashOf(t), nil, nil, "[+]configuration ok")
	c.signal(t, os.Interrupt)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
