package config

import (
	"path/filepath"
	"strings"
	"testing"
)

const audited = head + "upstreams: [{name: api, endpoints: [http://127.0.0.1:9000]}]\ntelemetry:\n  audit: "

func TestAuditDefaults(t *testing.T) {
	c, problem, _ := load(t, audited+"{log: {path: audit.log}, webhook: {kubeconfig: hook}}\n", Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	a := c.Telemetry.Audit
	if filepath.Base(a.Log.Path) != "audit.log" || !filepath.IsAbs(a.Log.Path) ||
		!filepath.IsAbs(a.Webhook.Kubeconfig) {
		t.Errorf("files are not beside the configuration: %s, %s", a.Log.Path, a.Webhook.Kubeconfig)
	}
	want := defaultAudit()
	log, hook := defaultAuditLog(), defaultAuditWebhook()
	log.Path, hook.Kubeconfig = a.Log.Path, a.Webhook.Kubeconfig
	if *a.Log != log || *a.Webhook != hook || a.Mode != want.Mode || a.QueueBytes != want.QueueBytes ||
		a.MaxEventBytes != want.MaxEventBytes {
		t.Errorf("%+v %+v %+v", a, a.Log, a.Webhook)
	}
}

func TestAuditFindings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{}", "telemetry.audit: Required value: must have `log`, `webhook` or both"},
		{"{mode: Lossy, log: {path: '-'}}", "telemetry.audit.mode: must be 'Batch' or 'Blocking', not 'Lossy'"},
		{"{log: {maxSizeMegabytes: 1}}", "telemetry.audit.log.path: Required value|telemetry.audit.log.maxSizeMegabytes: must be between 10 and 1048576, inclusive, not 1"},
		{"{webhook: {}}", "telemetry.audit.webhook.kubeconfig: Required value"},
		{"{log: {path: '-', size: 1}}", "telemetry.audit.log.size: unknown field"},
	} {
		_, errs, _ := load(t, audited+c.text+"\n", Flags{})
		for _, want := range strings.Split(c.want, "|") {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: got %s, want %s", c.text, errs, want)
			}
		}
	}
}
