package main

import (
	"fmt"
	"slices"
	"strings"
)

// order lists the rooms from the top down. A room is a folder with everything below it; the longest name that fits
// counts. It may import the rooms of lines below its own, and nothing of its own line but itself.
var order = [][]string{
	{"cmd"},
	{"internal/scan", "internal/scaffold", "internal/playground"},
	{"internal/policytest"},
	{"proxy", "internal/admin"},
	{"policies"},
	{"internal/cluster"},
	{"internal/storage/kubernetes", "internal/storage/plain"},
	{"internal/storage"},
	{"admission/gatekeeper"},
	{"admission/vap", "admission/mutate", "admission/rego", "admission/conventions"},
	{"admission"},
	{"internal/audit"},
	{"internal/ratelimit", "internal/identity", "internal/state", "internal/refusal"},
	{"internal/access"},
	{"defaults"},
	{"internal/openapi"},
	{"internal/contract"},
	{"internal/schema"},
	{"internal/schema/graph"},
	{"internal/schema/keyword", "internal/schema/list"},
	{"internal/schema/wording"},
	{"internal/schema/compare", "internal/schema/format"},
	{"internal/merge"},
	{"internal/cel/explain"},
	{"internal/cel"},
	{"internal/cel/value"},
	{"internal/resource"},
	{"internal/document"},
	{"internal/status", "internal/reword", "internal/pattern", "internal/quantity", "internal/rollout"},
	{"internal/quote", "internal/discovery", "internal/index"},
}

// aside are the rooms that stand beside the order: which rooms they may import, and which may
// import them. Tests, cases and programs at the top may import anything.
var aside = map[string]struct{ imports, importedBy []string }{
	"internal/credentials": {[]string{"internal/file", "internal/watch"},
		[]string{"cmd", "proxy", "internal/listeners", "internal/server"}},
	"internal/file":       {nil, []string{"cmd", "policies", "internal/config", "internal/credentials", "internal/manifest"}},
	"internal/linewriter": {nil, []string{"internal/audit", "internal/telemetry"}},
	"internal/memory": {[]string{"internal/presence"},
		[]string{"cmd", "internal/playground", "proxy", "internal/server", "internal/config", "internal/storage",
			"internal/storage/plain", "internal/ratelimit", "policies"}},
	"internal/presence": {nil, []string{"cmd", "proxy", "internal/memory", "internal/ratelimit",
		"internal/server", "internal/storage", "internal/storage/plain", "internal/upstream"}},
	"internal/systemd":  {nil, []string{"cmd"}},
	"internal/handover": {nil, []string{"cmd"}},
	"internal/descriptors": {nil, []string{"cmd", "proxy", "internal/admin", "internal/backend", "internal/server",
		"internal/upstream"}},
	"internal/watch": {nil, []string{"policies", "internal/credentials", "cmd"}},
	"internal/config": {[]string{"internal/status", "internal/resource", "internal/manifest", "internal/file",
		"internal/memory", "internal/cors/origin"}, []string{"cmd", "internal/policytest", "internal/scan", "proxy",
		"internal/admin"}},
	"internal/telemetry": {[]string{"internal/linewriter", "internal/octets", "internal/status",
		"internal/resource", "internal/outbound", "internal/quote"},
		[]string{"cmd", "internal/policytest", "internal/scan", "proxy", "internal/admin"}},
	"internal/clock": {nil, []string{"internal/storage", "internal/upstream"}},
	"internal/circuit": {nil, []string{"cmd", "proxy", "internal/ratelimit", "internal/upstream/balance",
		"internal/upstream"}},
	"internal/upstream/balance": {[]string{"internal/circuit"}, []string{"cmd", "proxy", "internal/upstream"}},
	"internal/listeners":        {[]string{"internal/credentials"}, []string{"proxy", "internal/server"}},
	"internal/server": {[]string{"internal/descriptors", "internal/status", "internal/credentials",
		"internal/listeners", "internal/memory", "internal/h1", "internal/h2", "internal/message", "internal/peek",
		"internal/presence", "internal/secure", "internal/stack"}, []string{"proxy"}},
	"internal/upstream/h2conn": {[]string{"internal/h2", "internal/message"}, []string{"internal/upstream"}},
	"internal/upstream": {[]string{"internal/descriptors", "internal/status", "internal/resource",
		"internal/clock", "internal/circuit", "internal/h1", "internal/h2", "internal/message", "internal/peek",
		"internal/presence", "internal/upstream/balance", "internal/upstream/h2conn", "internal/secure",
		"internal/stack"}, []string{"cmd", "proxy", "internal/storage", "internal/storage/kubernetes",
		"internal/storage/plain"}},
	"internal/paint": {nil, []string{"cmd", "internal/explanation"}},
	"internal/octets": {nil, []string{"internal/document", "internal/message", "internal/quote",
		"internal/readings", "internal/resource", "internal/telemetry"}},
	"internal/stack":  {nil, []string{"internal/server", "internal/upstream"}},
	"internal/peek":   {nil, []string{"internal/admin", "internal/server", "internal/upstream"}},
	"internal/secure": {nil, []string{"proxy", "internal/server", "internal/upstream"}},
	"internal/message": {[]string{"internal/octets", "internal/status"},
		[]string{"proxy", "internal/compress", "internal/cors", "internal/contract", "internal/openapi",
			"internal/storage", "internal/storage/kubernetes", "internal/storage/plain", "internal/h1", "internal/h2",
			"internal/ingress", "internal/readings", "internal/server", "internal/upstream", "internal/upstream/h2conn",
			"policies"}},
	"internal/h1": {[]string{"internal/message"}, []string{"internal/server", "internal/upstream"}},
	"internal/h2": {[]string{"internal/message"},
		[]string{"internal/server", "internal/upstream", "internal/upstream/h2conn"}},
	"internal/compress": {[]string{"internal/message"},
		[]string{"proxy", "internal/storage", "internal/storage/plain"}},
	"internal/cors":        {[]string{"internal/message", "internal/cors/origin"}, []string{"proxy"}},
	"internal/cors/origin": {nil, []string{"internal/cors", "internal/config"}},
	"internal/h1/h1test":   {[]string{"internal/credentials", "internal/testutil"}, nil},
	"internal/h2/h2test":   {nil, nil},
	"internal/routing": {nil, []string{"cmd", "proxy", "policies", "internal/config", "internal/cluster",
		"internal/ingress", "internal/server"}},
	"internal/ingress": {[]string{"internal/message", "internal/routing", "internal/quote"},
		[]string{"cmd", "policies", "internal/cluster"}},
	"internal/manifest": {[]string{"internal/document", "internal/file", "internal/quote"},
		[]string{"internal/schema/graph", "internal/openapi", "internal/policytest", "internal/scan",
			"internal/scaffold", "policies", "internal/config", "proxy", "admission/rego"}},
	"internal/protobuf": {[]string{"internal/status", "internal/quantity"}, []string{"proxy"}},
	"internal/versions": {[]string{"internal/document"}, []string{"policies"}},
	"internal/cbor":     {[]string{"internal/status", "internal/document"}, []string{"proxy"}},
	"internal/cel/plan": {[]string{"internal/cel/value", "internal/document", "internal/pattern"},
		[]string{"internal/cel", "internal/cel/celtest", "internal/cel/explain"}},
	"admission/rego/plan":  {nil, []string{"admission/rego"}},
	"internal/cel/celtest": {[]string{"internal/cel/plan", "internal/cel/value", "internal/document"}, nil},
	"internal/outbound": {nil, []string{"cmd", "internal/policytest", "policies", "admission/rego", "admission",
		"internal/audit", "internal/cluster", "internal/identity", "internal/telemetry"}},
	"internal/pages": {[]string{"internal/quote"}, []string{"internal/admin", "internal/scan", "internal/explanation"}},
	"internal/explanation": {[]string{"internal/pages", "internal/paint"},
		[]string{"cmd", "internal/admin", "internal/playground", "internal/policytest", "proxy"}},
	"internal/recorded": {[]string{"internal/document", "internal/identity", "internal/resource"},
		[]string{"cmd", "internal/scan", "internal/scaffold"}},
	"internal/backend": {[]string{"internal/descriptors", "internal/document", "internal/resource"},
		[]string{"cmd", "internal/cases", "internal/policytest"}},
	"internal/cases":        {nil, nil},
	"internal/doctest":      {[]string{"internal/testutil"}, nil},
	"internal/testutil":     {nil, []string{"policies/policiestest", "internal/ratelimit", "internal/doctest"}},
	"policies/policiestest": {[]string{"internal/testutil", "policies"}, nil},

	"internal/readings": {[]string{"internal/message", "internal/octets"},
		[]string{"proxy", "internal/audit", "internal/resource"}},
	"internal/storage/storagetest": {[]string{"admission", "internal/cel", "internal/document", "internal/memory",
		"internal/message", "internal/resource", "internal/schema", "internal/status", "internal/storage",
		"internal/upstream", "policies", "policies/policiestest"}, nil},
	"internal/readings/readingstest": {[]string{"internal/message"}, nil},
}

// engines are the libraries that only some rooms may import.
var engines = map[string][]string{
	"github.com/valyala/fasthttp": {"internal/admin", "internal/compress"},
	"github.com/google/cel-go": {"internal/cel", "internal/cel/celtest", "internal/cel/explain",
		"internal/cel/plan", "internal/cel/value"},
	"github.com/getkin/kin-openapi":       {"internal/openapi"},
	"github.com/open-policy-agent/opa":    {"admission/rego", "admission/rego/plan"},
	"github.com/spf13/cobra":              {"cmd"},
	"github.com/prometheus/client_golang": {"internal/telemetry"},
	"github.com/redis/go-redis":           {"internal/ratelimit"},
	"github.com/theory/jsonpath":          {"policies"},
	"github.com/pires/go-proxyproto":      {"internal/server"},
}

// violations returns a sentence for each import that breaks a rule.
func violations(packages []pkg) []string {
	var found []string
	for _, p := range packages {
		from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
		if !known(from) {
			found = append(found,
				fmt.Sprintf("%s: the import rules name no room for it; add it to tools/importrule/rules.go", from))
			continue
		}
		for _, imported := range p.Imports {
			if why := breach(from, imported, p.Module.Path); why != "" {
				found = append(found, fmt.Sprintf("%s: must not import %s: %s", from,
					strings.TrimPrefix(imported, p.Module.Path+"/"), why))
			}
		}
	}
	return found
}

// breach says why a package of the module may not import another; empty if it may.
func breach(from, imported, module string) string {
	room := roomOf(from)
	for engine, rooms := range engines {
		if within(imported, engine) && !slices.Contains(rooms, room) {
			return "only " + strings.Join(rooms, ", ") + " may"
		}
	}
	to, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return ""
	}
	target := roomOf(to)
	if target == "" || room == target {
		return "" // an unknown room is found once, as a package of its own
	}
	here, there := level(room), level(target)
	switch {
	case here >= 0 && there >= 0:
		if here >= there {
			return fmt.Sprintf("%s stands above %s or beside it, and imports only point down", target, room)
		}
	case here >= 0:
		if !slices.Contains(aside[target].importedBy, room) {
			return "only " + orNone(aside[target].importedBy) + " may"
		}
	default:
		// A room aside names all that it imports; a room that it may import must also let it in.
		if room == "internal/cases" {
			return ""
		}
		if !slices.Contains(aside[room].imports, target) {
			return room + " may import of ours only " + orNone(aside[room].imports)
		}
	}
	return ""
}

func known(path string) bool { return roomOf(path) != "" }

// roomOf returns the longest room name that the path lies in; empty if there is none.
func roomOf(path string) string {
	best := ""
	consider := func(room string) {
		if within(path, room) && len(room) > len(best) {
			best = room
		}
	}
	for _, line := range order {
		for _, room := range line {
			consider(room)
		}
	}
	for room := range aside {
		consider(room)
	}
	return best
}

// level is the line of order that the room stands on; -1 for a room aside.
func level(room string) int {
	return slices.IndexFunc(order, func(line []string) bool { return slices.Contains(line, room) })
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func orNone(rooms []string) string {
	if len(rooms) == 0 {
		return "tests"
	}
	return strings.Join(rooms, ", ")
}
