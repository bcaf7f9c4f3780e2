package proxy

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// fillRequest sets all that a request can know.
func fillRequest(r *request) (filled []reflect.Value) {
	known := []any{r, &r.who, &r.permission, &r.body, &r.upgrade, &r.attempt.found, &r.limits.limiting,
		&r.telemetry.noted, r.prefilter}
	for _, of := range known {
		filled = append(filled, testutil.Fill(of))
	}
	return filled
}

// TestReset: nothing that is known of one request is there for the next one, whatever field is added.
func TestReset(t *testing.T) {
	r := newRequest()
	pooled := r.pooled
	filled := fillRequest(r)
	release(r)
	if r.pooled != pooled {
		t.Error("the memory is not the request's any more")
	}
	for _, of := range filled {
		for i := range of.NumField() {
			field, name := of.Field(i), of.Type().Field(i).Name
			isMemory := field.Kind() == reflect.Slice && field.Len() == 0
			if name != "pooled" && name != "who" && !isMemory && !field.IsZero() {
				t.Errorf("%s.%s is still set after a request", of.Type().Name(), name)
			}
		}
	}
}

// copied are the fields of a request that its copies have, and fresh those that they find out anew. A new field is in
// one of them once its author has decided.
var (
	copied = map[string]string{
		"request":   "gateway incoming set listener route scope who named",
		"who":       "user client refusal asking challenge lines",
		"Subject":   "Info Resource",
		"Exchanges": "Started Head From Memory Limits",
		"noted":     "record target",
	}
	fresh = map[string]string{
		"request":          "pooled target permission body parameters wrong upgrade isShadow isUnreadable isDetached",
		"pooled":           "Request attempt asked prefilter limits telemetry",
		"permission":       "refusal isGiven",
		"body":             "language isUntyped isJSON parsed mayPass message beyond json declared boundary nullRemoves",
		"upgrade":          "protocol tunnel",
		"attempt":          "Write findings",
		"findings":         "found report referred",
		"found":            "isBegun attributes options schema unread checked unknown",
		"prefilter":        "request attributes known",
		"limits":           "limiting request charges lines",
		"limiting":         "retryAfter refusedBy headers",
		"requestTelemetry": "noted events lines object",
		"noted":            "stripped spans answers explanation form isNamed kind number refused",
		"Request":          "Subject Exchanges Patch Editor",
		"Subject":          "Served",
		"Exchanges":        "Client Body Response Warnings Took Tracer Watcher Sink Copier",
	}
)

// TestCopy: each field of a request is one that its copies have, or one that they find out anew.
func TestCopy(t *testing.T) {
	r, c := newRequest(), newRequest()
	testutil.Fill(&r.Subject)
	testutil.Fill(&r.Exchanges)
	fillRequest(r)
	r.Started, r.From.Peer, r.Info.Name, r.who.user.Name, r.who.asking.Authorization = time.Now(), "a", "a", "a",
		[]byte("a")
	r.telemetry.record.ID, r.who.client, r.who.refusal, r.named.Revision = "a", netip.MustParseAddr("10.0.0.1"),
		errServed, "a"
	in := new(server.Request)
	r.copyTo(c, in)
	for _, of := range []any{
		c, &c.pooled, &c.who, &c.permission, &c.body, &c.upgrade, &c.attempt, c.attempt.findings, &c.attempt.found,
		c.prefilter, c.limits, &c.limits.limiting,
		c.telemetry, &c.telemetry.noted, c.Request, &c.Subject, &c.Exchanges,
	} {
		fields := reflect.ValueOf(of).Elem()
		name := fields.Type().Name()
		isCopied, isFresh := strings.Fields(copied[name]), strings.Fields(fresh[name])
		for i := range fields.NumField() {
			f := fields.Type().Field(i)
			if !f.IsExported() && strings.HasSuffix(fields.Type().PkgPath(), "internal/storage") {
				continue // of an exchange with a backend
			}
			switch is, isNot := slices.Contains(isCopied, f.Name), slices.Contains(isFresh, f.Name); {
			case is == isNot:
				t.Errorf("decide whether copies of a request have %s.%s", name, f.Name)
			case is && fields.Field(i).IsZero():
				t.Errorf("a copy does not have %s.%s", name, f.Name)
			case isNot && name != "pooled" && f.Name != "pooled" && f.Type.Kind() != reflect.Struct &&
				f.Type.Kind() != reflect.Pointer && !fields.Field(i).IsZero():
				t.Errorf("a copy has %s.%s", name, f.Name)
			}
		}
	}
}
