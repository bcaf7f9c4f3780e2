package apis

import (
	"encoding/binary"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/e2e/apis/programs"
	"github.com/admission-gateway/gateway/e2e/apis/testutil"
)

// debian returns the path of a program; the test is skipped without it.
func debian(t *testing.T, name string) string {
	t.Helper()
	path, err := programs.Path(name)
	need(t, err)
	return path
}

func startPrometheus(t *testing.T) *program {
	t.Helper()
	file, dir := debian(t, "prometheus"), t.TempDir()
	write(t, filepath.Join(dir, "prometheus.yml"), "global: {}\n")
	return start(t, "/-/ready", func(address string) *exec.Cmd {
		return exec.Command(file, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+
			filepath.Join(dir, "data"),
			"--web.listen-address="+address, "--web.enable-remote-write-receiver")
	})
}

func startAlertmanager(t *testing.T) *program {
	t.Helper()
	file, dir := debian(t, "prometheus-alertmanager"), t.TempDir()
	write(t, filepath.Join(dir, "alertmanager.yml"), "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
	return start(t, "/-/ready", func(address string) *exec.Cmd {
		return exec.Command(file, "--config.file="+filepath.Join(dir, "alertmanager.yml"), "--storage.path="+
			filepath.Join(dir, "data"),
			"--web.listen-address="+address, "--cluster.listen-address=")
	})
}

func startEtcd(t *testing.T) *program {
	t.Helper()
	file, dir, peer := debian(t, "etcd"), t.TempDir(), testutil.FreeAddress(t)
	return start(t, "/health", func(address string) *exec.Cmd {
		return exec.Command(file, "--data-dir="+filepath.Join(dir, "data"), "--listen-client-urls=http://"+address,
			"--advertise-client-urls=http://"+address,
			"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer,
			"--initial-cluster=default=http://"+peer)
	})
}

// remoteWrite is one sample as Prometheus' remote write sends it: protobuf in a block of Snappy.
func remoteWrite() string {
	field := func(number byte, value string) string { return string([]byte{number<<3 | 2, byte(len(value))}) + value }
	label := field(1, field(1, "__name__")+field(2, "written"))
	sample := string(binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(42))) +
		string(binary.AppendUvarint([]byte{2 << 3}, 60_000))
	series := field(1, label+field(2, sample))
	return string([]byte{byte(len(series)), byte(len(series)-1) << 2}) + series
}

func TestPrometheusWithoutFiles(t *testing.T) {
	direct, gateway := startTwice(t, func() *program { return startPrometheus(t) })
	form := []string{"Content-Type: application/x-www-form-urlencoded"}
	proveEqual(t, direct, gateway, varying(`"(startTime|lastConfigTime|CWD|timestamp)":"[^"]*"`), []request{
		{name: "remote-write", method: "POST", target: "/api/v1/write", body: remoteWrite(), header: []string{
			"Content-Type: application/x-protobuf", "Content-Encoding: snappy",
			"X-Prometheus-Remote-Write-Version: 0.1.0"}},
		without("query", "GET", "/api/v1/query?query=written&time=60"),
		{name: "query-form", method: "POST", target: "/api/v1/query", header: form, body: "query=written&time=60"},
		without("query-invalid", "GET", "/api/v1/query?query=written(&time=60"),
		without("range", "GET", "/api/v1/query_range?query=written&start=0&end=120&step=30"),
		{name: "range-form", method: "POST", target: "/api/v1/query_range", header: form,
			body: "query=written&start=0&end=120&step=30"},
		without("exemplars", "GET", "/api/v1/query_exemplars?query=written&start=0&end=120"),
		without("format", "GET", "/api/v1/format_query?query=sum(written)"),
		without("series", "GET", "/api/v1/series?match[]=written&start=0&end=120"),
		without("labels", "GET", "/api/v1/labels"),
		without("label-values", "GET", "/api/v1/label/__name__/values"),
		without("targets", "GET", "/api/v1/targets?state=active"),
		without("config", "GET", "/api/v1/status/config"),
		without("admin-refused", "POST", "/api/v1/admin/tsdb/snapshot"),
		without("preflight", "OPTIONS", "/api/v1/query", preflight...),
		without("no-such-route", "GET", "/api/v1/none"),
		without("redirect", "GET", "/"),
		without("page", "GET", "/graph", "Accept-Encoding: gzip"),
	})
}

// TestPrometheusToolWithoutFiles: promtool prints the same through the gateway.
func TestPrometheusToolWithoutFiles(t *testing.T) {
	tool := debian(t, "promtool")
	direct, gateway := startTwice(t, func() *program { return startPrometheus(t) })
	proveSameOutput(t, direct, gateway, varying(), tool, [][]string{
		{"query", "instant", "http://ADDRESS", "vector(1) + 1", "--time=60"},
		{"query", "instant", "http://ADDRESS", "nonsense("},
		{"query", "range", "--start=0", "--end=120", "--step=30s", "http://ADDRESS", "vector(1)"},
		{"query", "series", "--match=written", "http://ADDRESS"},
		{"query", "labels", "http://ADDRESS", "__name__"},
		{"check", "healthy", "--url=http://ADDRESS"},
	})
}

const (
	alerts  = `[{"labels":{"alertname":"down","instance":"a"},"startsAt":"2020-01-01T00:00:00Z","endsAt":"2090-01-01T00:00:00Z"},{"labels":{"alertname":"slow"}}]`
	silence = `{"matchers":[{"name":"alertname","value":"down","isRegex":false}],"startsAt":"2080-01-01T00:00:00Z","endsAt":"2090-01-01T00:00:00Z","createdBy":"ann","comment":"quiet"}`
)

var alertmanagerVaries = varying(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}`,
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)`, `\b(GET,POST|POST,GET)\b`, `-storage\.path[^"]*`,
	`/tmp/[^"\s]*`)

func TestAlertmanagerWithoutFiles(t *testing.T) {
	direct, gateway := startTwice(t, func() *program { return startAlertmanager(t) })
	proveEqual(t, direct, gateway, alertmanagerVaries, []request{
		withJSON("alerts", "POST", "/api/v2/alerts", alerts),
		withJSON("alerts-invalid", "POST", "/api/v2/alerts", `[{"labels":{}}]`),
		withJSON("alerts-broken", "POST", "/api/v2/alerts", `[{`),
		without("read-alerts", "GET", "/api/v2/alerts?filter=alertname%3D%22down%22"),
		without("read-alerts-invalid", "GET", "/api/v2/alerts?filter=%7B"),
		without("groups", "GET", "/api/v2/alerts/groups"),
		withJSON("silence", "POST", "/api/v2/silences", silence),
		withJSON("silence-invalid", "POST", "/api/v2/silences", `{"matchers":[]}`),
		without("silences", "GET", "/api/v2/silences"),
		without("silence-missing", "GET", "/api/v2/silence/00000000-0000-0000-0000-000000000000"),
		without("silence-delete-missing", "DELETE", "/api/v2/silence/00000000-0000-0000-0000-000000000000"),
		without("receivers", "GET", "/api/v2/receivers"),
		without("preflight", "OPTIONS", "/api/v2/silences", preflight...),
		without("no-such-route", "GET", "/api/v2/none"),
		withJSON("method-not-there", "PUT", "/api/v2/silences", silence),
		without("page", "GET", "/"),
	})
}

// TestAlertmanagerToolWithoutFiles: amtool prints the same through the gateway.
func TestAlertmanagerToolWithoutFiles(t *testing.T) {
	tool := debian(t, "amtool")
	direct, gateway := startTwice(t, func() *program { return startAlertmanager(t) })
	proveSameOutput(t, direct, gateway, alertmanagerVaries, tool, amtoolCommands())
}

func amtoolCommands() [][]string {
	to := "--alertmanager.url=http://ADDRESS"
	return [][]string{
		{to, "alert", "add", "down", "instance=a", "--annotation=runbook=x"},
		{to, "alert", "query", "alertname=down", "-o", "json"},
		{to, "silence", "add", "alertname=down", "--author=ann", "--comment=quiet", "--duration=1h"},
		{to, "silence", "add", "alertname=~(", "--author=ann", "--comment=quiet"},
		{to, "silence", "query", "-o", "json"},
		{to, "silence", "expire", "00000000-0000-0000-0000-000000000000"},
		{to, "config", "show"},
		{to, "cluster", "show"},
	}
}

// proveSameOutput runs each command against both addresses, in their order. What they print, and how they exit, is a
// proof for each.
func proveSameOutput(t *testing.T, direct, gateway string, vary func(string) string, tool string, commands [][]string) {
	t.Helper()
	run := func(address string, args []string) string {
		var with []string
		for _, arg := range args {
			with = append(with, strings.ReplaceAll(arg, "ADDRESS", address))
		}
		out, err := exec.Command(tool, with...).CombinedOutput()
		return vary(strings.ReplaceAll(fmt.Sprintf("%s%v", out, err), address, "ADDRESS"))
	}
	for i, args := range commands {
		a, b := run(direct, args), run(gateway, args)
		name := fmt.Sprintf("%d-%s", i+1, strings.Join(words(args)[:2], "-"))
		prove(t, name, func(t *proof) {
			if a != b {
				t.Errorf("%s\n%s", strings.Join(args, " "), table([]row{{"output", a, b}}))
			}
		})
	}
}

// words returns the arguments that are no flags.
func words(args []string) []string {
	var list []string
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			list = append(list, arg)
		}
	}
	return append(list, "")
}

func TestEtcdWithoutFiles(t *testing.T) {
	direct, gateway := startTwice(t, func() *program { return startEtcd(t) })
	proveEqual(t, direct, gateway, varying(`"(cluster_id|member_id|leader|dbSize\w*|raft\w*)":"\d+"`), []request{
		withJSON("put", "POST", "/v3/kv/put", `{"key":"YQ==","value":"MQ=="}`),
		{name: "put-form-type", method: "POST", target: "/v3/kv/put",
			header: []string{"Content-Type: application/x-www-form-urlencoded"}, body: `{"key":"Yg==","value":"MQ=="}`},
		withJSON("range", "POST", "/v3/kv/range", `{"key":"YQ==","range_end":"eg=="}`),
		withJSON("range-invalid", "POST", "/v3/kv/range", `{"key":7}`),
		withJSON("range-empty", "POST", "/v3/kv/range", `{}`),
		withJSON("txn", "POST", "/v3/kv/txn", `{"compare":[{"target":"VALUE","key":"YQ==","value":"MQ=="}],"success":[{"request_put":{"key":"YQ==","value":"Mg=="}}]}`),
		withJSON("lease", "POST", "/v3/lease/grant", `{"ID":"7","TTL":"600"}`),
		withJSON("lease-revoke", "POST", "/v3/lease/revoke", `{"ID":"7"}`),
		withJSON("lease-revoke-missing", "POST", "/v3/lease/revoke", `{"ID":"8"}`),
		withJSON("delete", "POST", "/v3/kv/deleterange", `{"key":"YQ=="}`),
		without("without-body", "POST", "/v3/kv/range"),
		without("no-such-route", "GET", "/v3/none"),
		without("version", "GET", "/version"),
	})
}
