package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestSettings: each field of a Configuration has one setting, in the order of the fields, so that no new key is
// forgotten.
func TestSettings(t *testing.T) {
	var keys []string
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			if !f.IsExported() {
				continue
			}
			key := strings.TrimPrefix(path+"."+f.Tag.Get("json"), ".")
			switch isParent := slices.ContainsFunc(Settings,
				func(s Setting) bool { return strings.HasPrefix(s.Key, key+".") }); {
			case isParent && f.Type.Kind() != reflect.Struct:
				t.Errorf("%s must have one setting, because it may be left out", key)
			case isParent:
				walk(key, f.Type)
			default:
				keys = append(keys, key)
			}
		}
	}
	walk("", reflect.TypeFor[Configuration]())
	var got []string
	for _, s := range Settings {
		got = append(got, s.Key)
	}
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(keys))) {
		t.Errorf("the settings are\n%v\nand the fields are\n%v", got, keys)
	}
}

var update = flag.Bool("update", false, "write the table of settings")

// TestDocsOfSettings: the page has a row for each setting.
func TestDocsOfSettings(t *testing.T) {
	const page, header = "../../docs/configuration.md", "| key | comes into force | because |\n|---|---|---|\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), header)
	if !found {
		t.Fatalf("%s has no table", page)
	}
	rows := ""
	for _, s := range Settings {
		when := "by a reload"
		if s.Restart != "" {
			when = "by a restart"
		}
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", s.Key, when, s.Restart)
	}
	at := strings.Index(rest, "\n## ")
	if rest[:at] == rows {
		return
	}
	if !*update {
		t.Fatalf("%s has another table; go test ./internal/config -run TestDocsOfSettings -update writes it", page)
	}
	if err := os.WriteFile(page, []byte(before+header+rows+rest[at:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestChartOfSettings: the chart rolls Pods if one of the settings that need a restart changes, and for no other.
func TestChartOfSettings(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/templates/_helpers.tpl")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `define "gateway.needsRestart"`)
	definition, _, _ := strings.Cut(rest, "{{- end -}}")
	var want []string
	for _, s := range Settings {
		if s.Restart != "" {
			want = append(want, s.Key[strings.LastIndexByte(s.Key, '.')+1:])
		}
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^  \(pick .*\)$`).FindAllString(definition, -1) {
		for _, key := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(m, -1) {
			got = append(got, key[1])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the chart has %v, want %v", got, want)
	}
}

// TestReload: what can be reloaded is that of the file, and each changed key that needs a restart is named and stays.
func TestReload(t *testing.T) {
	const upstreams = "upstreams: [{name: a, endpoints: ['http://127.0.0.1:1'], dialect: Plain}]\n"
	const tls = "tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt}\n"
	const listeners = "listeners: [{name: a, listen: ':7', hosts: [a.example], redirectToHTTPS: {}}]\n"
	for _, c := range []struct {
		before, after string
		flags         Flags
		pending       []string
		applied       func(*Configuration) any // is to be as in the file
		err           string
	}{
		{"", "", Flags{}, nil, func(c *Configuration) any { return c }, ""},
		{"", "drainSeconds: 3\nlimits: {bodyBytes: 5}\n", Flags{}, nil, func(c *Configuration) any { return c }, ""},
		{"", "listen: ':9'\n" + tls + listeners, Flags{}, nil, func(c *Configuration) any { return c }, ""},
		{tls, "http2: {enabled: false}\ndrainSeconds: 3\n" + tls, Flags{}, []string{"http2.enabled"},
			func(c *Configuration) any { return c.DrainSeconds }, ""},
		{"", "listen: ':9'\ndrainSeconds: 3\n", Flags{Listen: ":8"}, nil, func(c *Configuration) any { return c }, ""},
		{
			"", "admin: {profiling: true}\nlimits: {connections: 5, uriBytes: 999, bodiesInFlightBytes: 4000000, heavyRequests: 3}\ntelemetry: {log: {format: JSON, level: Debug}, metrics: {names: OpenTelemetry}, tracing: {endpoint: 'http://a'}}\n",
			Flags{}, []string{"admin", "limits.bodiesInFlightBytes", "limits.heavyRequests", "limits.connections",
				"telemetry.log.format", "telemetry.tracing", "telemetry.metrics"},
			func(c *Configuration) any { return fmt.Sprint(c.Telemetry.Log.Level, c.Limits.URIBytes) }, "",
		},
		{
			"limits: {bodiesInFlightBytes: 4000000}\n", "limits: {bodiesInFlightBytes: 9000000, bodyBytes: 8000000}\n",
			Flags{}, nil, nil,
			"gateway.yaml:4: limits.bodiesInFlightBytes: must be greater than or equal to `limits.bodyBytes`, which is 8000000 (with the values in force of limits.bodiesInFlightBytes, which need a restart)",
		},
		{"", "drainSeconds: [\n", Flags{}, nil, nil, "gateway.yaml:5: must be valid YAML"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "gateway.yaml")
		testutil.WriteFile(t, file, head+upstreams+c.before)
		running, err := Load(file, c.flags)
		if err != nil {
			t.Fatal(err)
		}
		testutil.WriteFile(t, file, head+upstreams+c.after)
		next, pending, err := running.Reload(file, c.flags)
		if c.err != "" {
			if got := strings.ReplaceAll(fmt.Sprint(err), dir+"/", ""); !strings.HasPrefix(got, c.err) {
				t.Errorf("%s: the error is\n%s\nwant\n%s", c.after, got, c.err)
			}
			continue
		}
		if err != nil || !slices.Equal(pending, c.pending) {
			t.Errorf("%s: pending are %v, %v, want %v", c.after, pending, err, c.pending)
			continue
		}
		want, err := Load(file, c.flags)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.applied(next), c.applied(want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: applied is\n%+v\nwant\n%+v", c.after, got, want)
		}
		if (next.Hash() == want.Hash()) != (len(pending) == 0) || next.IsSame(running) != (c.after == "") {
			t.Errorf("%s: the hash is %s, that of the file is %s, that before %s", c.after, next.Hash(), want.Hash(),
				running.Hash())
		}
		if _, again, err := next.Reload(file, c.flags); err != nil || !slices.Equal(again, pending) {
			t.Errorf("%s: pending later are %v, %v, want %v", c.after, again, err, pending)
		}
	}
}

// TestReloadOfEachKey changes each key of a whole configuration file, one at a time: it comes into force, or the
// setting is named that needs a restart, as Settings say.
func TestReloadOfEachKey(t *testing.T) {
	dir := t.TempDir()
	kubeconfig(t, dir, api.Cluster{Server: "https://10.0.0.1:6443", InsecureSkipTLSVerify: true},
		api.AuthInfo{Token: "secret"})
	file := filepath.Join(dir, "gateway.json")
	whole := wholeFile(t)
	write := func() {
		data, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		testutil.WriteFile(t, file, string(data))
	}
	write()
	running, err := Load(file, Flags{})
	if err != nil {
		t.Fatal(err)
	}
	index := regexp.MustCompile(`\[\d+\]`)
	settingOf := func(path string) *Setting {
		for key := index.ReplaceAllString(path, ""); key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
			if s := SettingOf(key); s != nil {
				return s
			}
		}
		return nil
	}
	seen := map[string]bool{}
	change := func(path string, is any, set func(any)) {
		setting := settingOf(path)
		if setting == nil {
			t.Errorf("%s has no setting", path)
			return
		}
		defer set(is)
		for _, other := range others(is) {
			set(other)
			write()
			next, pending, err := running.Reload(file, Flags{})
			switch {
			case err != nil:
				continue // this value is not valid
			case setting.Restart != "" && (!slices.Equal(pending, []string{setting.Key}) || !next.IsSame(running)):
				t.Errorf("%s: %v: %s must need a restart; pending are %v", path, other, setting.Key, pending)
			case setting.Restart == "" && (len(pending) > 0 || next.IsSame(running)):
				t.Errorf("%s: %v must come into force; pending are %v", path, other, pending)
			}
			seen[setting.Key] = true
			return
		}
	}
	var walk func(path string, at any, set func(any))
	walk = func(path string, at any, set func(any)) {
		switch at := at.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(at)) {
				if inner := strings.TrimPrefix(path+"."+key, "."); inner != "apiVersion" && inner != "kind" {
					walk(inner, at[key], func(v any) { at[key] = v })
				}
			}
		case []any:
			for i := range at {
				walk(fmt.Sprintf("%s[%d]", path, i), at[i], func(v any) { at[i] = v })
			}
		default:
			change(path, at, set)
		}
	}
	walk("", whole, nil)
	for _, s := range Settings {
		if !seen[s.Key] {
			t.Errorf("no key of %s could be changed", s.Key)
		}
	}
}

// others are values that a key may have in place of one.
func others(is any) []any {
	switch is := is.(type) {
	case bool:
		return []any{!is}
	case json.Number:
		n, _ := is.Int64()
		return []any{n + 1, n - 1}
	}
	text := fmt.Sprint(is)
	all := []any{text + "x", "x" + text, strings.Replace(text, "/", "/x", 1),
		strings.Replace(text, "127.0.0.1:8", "127.0.0.1:9", 1), text + ":1", "10.0.0.0/9"}
	for _, list := range wordLists() {
		words := reflect.ValueOf(list)
		for i := range words.Len() {
			if words.Index(i).String() == text {
				for k := range words.Len() {
					all = append(all, words.Index(k).String())
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(v any) bool { return v == is })
}
