// Package pagestest checks HTML pages.
package pagestest

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

var update = flag.Bool("update-pages", false, "write the golden files of pages")

// hostile ends each text of a value that Fill made.
const hostile = `</title><script>"'&lt;`

// Fill fills a value, which p points to: each text names its field and ends in markup, each slice has two items, each
// map two members, and each number is as long as the name of its field.
func Fill(p any) {
	fill(reflect.ValueOf(p).Elem(), "")
}

func fill(v reflect.Value, name string) {
	number := int64(len(name)) // the same whichever fields are beside it
	switch v.Kind() {
	case reflect.String:
		v.SetString(name + hostile)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(number)
	case reflect.Uint64:
		v.SetUint(uint64(number))
	case reflect.Float64:
		v.SetFloat(float64(number))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(name + hostile))
			return
		}
		if strings.Count(name, v.Type().Elem().Name()) > 1 {
			return // a type in itself
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), name+" 1 "+v.Type().Elem().Name())
		fill(v.Index(1), name+" 2 "+v.Type().Elem().Name())
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"a", "b"} {
			k, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			k.SetString(name + " " + key + hostile)
			fill(value, name+" "+key)
			v.SetMapIndex(k, value)
		}
	case reflect.Struct:
		if at, ok := v.Addr().Interface().(*time.Time); ok {
			*at = time.Unix(1_700_000_000+number, 0).UTC()
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), name+" "+v.Type().Field(i).Name)
		}
	}
}

// Same checks that a page is the one in testdata, and that what Fill made is nothing but text in it.
func Same(t *testing.T, page, name string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if page != string(want) {
		t.Errorf("the page is not %s:\n%s", file, page)
	}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "script" {
			t.Errorf("%s has a script, made of a value", file)
		}
	}
}
