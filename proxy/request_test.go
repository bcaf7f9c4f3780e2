package proxy

import (
	"reflect"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestRelease: nothing that one request left in its handler is there for the next one, whatever field is added.
func TestRelease(t *testing.T) {
	h := newHandler()
	parts := h.parts
	fields := testutil.Fill(h)
	forgotten := []reflect.Value{
		testutil.Fill(&h.admission.admitted), testutil.Fill(&h.limits.limiting), testutil.Fill(&h.trail.noted),
	}
	h.body.mayPass, h.who.challenge, h.permission.isGiven = true, "a", true
	h.admission.attributes.Item, h.limits.headers.repeated, h.trail.record.ID = "a", "a", "a"
	h.release()
	if h.parts != parts {
		t.Error("the parts are not those of the handler any more")
	}
	for _, of := range forgotten {
		if !of.IsZero() {
			t.Errorf("%s is still set after a request: %+v", of.Type(), of)
		}
	}
	for i := range fields.NumField() {
		field, name := fields.Field(i), fields.Type().Field(i).Name
		switch name {
		case "parts", "who": // with memory that is kept
			continue
		}
		if field.Kind() == reflect.Slice && field.Len() == 0 {
			continue
		}
		if !field.IsZero() {
			t.Errorf("%s is still set after a request", name)
		}
	}
	if h.who.challenge != "" {
		t.Error("what is known of the client is still there")
	}
}
