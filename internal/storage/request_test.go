package storage

import (
	"reflect"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestReset: nothing that one request learned is there for the next one, whatever field is added.
func TestReset(t *testing.T) {
	r := &Request{}
	fields := testutil.Fill(r)
	r.Reset()
	for i := range fields.NumField() {
		switch field, name := fields.Field(i), fields.Type().Field(i).Name; field.Kind() {
		case reflect.Struct, reflect.Interface: // with memory that is kept
		case reflect.Slice:
			if field.Len() > 0 {
				t.Errorf("%s has %d items after a request", name, field.Len())
			}
		default:
			if !field.IsZero() {
				t.Errorf("%s is %v after a request", name, field)
			}
		}
	}
}
