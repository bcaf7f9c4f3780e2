package proxy

import (
	"reflect"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestRelease: nothing that one request left in its handler is there for the next one, whatever field is added.
func TestRelease(t *testing.T) {
	h := &handler{}
	fields := testutil.Fill(h)
	h.body.mayPass, h.who.challenge, h.permission.isGiven, h.trail.isNamed = true, "a", true, true
	h.release()
	for i := range fields.NumField() {
		field, name := fields.Field(i), fields.Type().Field(i).Name
		switch name {
		case "request", "write", "asked", "admission", "limits", "who", "trail": // with memory that is kept
			continue
		}
		if field.Kind() == reflect.Slice && field.Len() == 0 {
			continue
		}
		if !field.IsZero() {
			t.Errorf("%s is still set after a request", name)
		}
	}
	if h.who.challenge != "" || h.trail.isNamed {
		t.Error("what is known of the client is still there")
	}
}
