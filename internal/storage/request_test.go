package storage

import (
	"reflect"
	"testing"
	"unsafe"
)

// TestReset: nothing that one request learned is there for the next one, whatever field is added.
func TestReset(t *testing.T) {
	r := &Request{}
	fields := reflect.ValueOf(r).Elem()
	for i := range fields.NumField() {
		f := fields.Field(i)
		f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() // also of a field that is not exported
		switch f.Kind() {
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Uint8, reflect.Uint64:
			f.SetUint(1)
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.String:
			f.SetString("a")
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
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
