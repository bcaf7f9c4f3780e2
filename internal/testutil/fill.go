package testutil

import (
	"reflect"
	"unsafe"
)

// Fill sets the fields of the struct that p points to, also those that are not exported: pointers to
// new values, slices to one item, numbers to 1, booleans to true and strings to "a". Structs,
// interfaces, maps and functions stay as they are. It returns the struct.
func Fill(p any) reflect.Value {
	fields := reflect.ValueOf(p).Elem()
	for i := range fields.NumField() {
		f := fields.Field(i)
		f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
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
	return fields
}
