package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const decided = head + "upstreams: [{name: api, endpoints: [http://127.0.0.1:9000]}]\nbundles: [{name: team, url: 'http://b/a'}]\ntelemetry:\n  decisionLogs: "

func TestDecisionLogs(t *testing.T) {
	c, problem, _ := load(t, decided+"{labels: {app: gateway}, maskBundle: team, log: {path: decisions.log}, "+
		"service: {url: 'https://logs.example.com/v1', partition: team-a, tokenFile: token, tls: {caFile: ca.crt}}}\n", Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	d := c.Telemetry.DecisionLogs
	for name, file := range map[string]string{"decisions.log": d.Log.Path, "token": d.Service.TokenFile,
		"ca.crt": d.Service.TLS.CAFile} {
		if filepath.Base(file) != name || !filepath.IsAbs(file) {
			t.Errorf("%s is not beside the configuration: %s", name, file)
		}
	}
	want, log, service := defaultDecisionLogs(), defaultAuditLog(), defaultDecisionService()
	log.Path = d.Log.Path
	service.URL, service.Partition, service.TokenFile, service.TLS = "https://logs.example.com/v1", "team-a",
		d.Service.TokenFile, d.Service.TLS
	want.Labels, want.MaskBundle, want.Log, want.Service = map[string]string{"app": "gateway"}, "team", &log, &service
	if !reflect.DeepEqual(*d, want) {
		t.Errorf("got %+v, want %+v", d, want)
	}
}

func TestDecisionLogFindings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{}", ": Required value: must have `service`, `log` or both"},
		{"{log: {path: '-'}, maskBundle: other}", ".maskBundle: must be the name of one of `bundles`, not 'other'"},
		{"{log: {}}", ".log.path: Required value"},
		{"{log: {path: '-'}, queueBytes: 1}", ".queueBytes: must be between 1048576 and 1073741824, inclusive, not 1"},
		{"{log: {path: '-'}, maxEventBytes: 1}",
			".maxEventBytes: must be between 16384 and 16777216, inclusive, not 1"},
		{"{service: {url: 'ftp://x'}}", ".service.url: must be a URL"},
		{"{service: {url: 'http://x', tls: {}}}", ".service.tls: must not be set unless `telemetry.decisionLogs.service.url` has the scheme 'https'"},
		{"{service: {url: 'https://x', tls: {keyFile: k}}}", ".service.tls.certFile: Required value"},
		{"{service: {url: 'http://x', partition: a/b}}",
			".service.partition: a lowercase RFC 1123 subdomain must consist of"},
		{"{service: {url: 'http://x', minDelaySeconds: 20}}", ".service.maxDelaySeconds: must be greater than or equal to `telemetry.decisionLogs.service.minDelaySeconds`, which is 20"},
		{"{service: {url: 'http://x', timeoutSeconds: 0}}",
			".service.timeoutSeconds: must be between 1 and 3600, inclusive, not 0"},
		{"{service: {url: 'http://x', uploadSizeLimitBytes: 90}}", ".service.uploadSizeLimitBytes: must be between 1024 and 1073741824, inclusive, not 90"},
		{"{service: {url: 'http://x', partition_name: a}}", ".service.partition_name: unknown field"},
	} {
		_, errs, _ := load(t, decided+c.text+"\n", Flags{})
		if !strings.Contains(errs, "telemetry.decisionLogs"+c.want) {
			t.Errorf("%s: got %s, want %s", c.text, errs, c.want)
		}
	}
}
