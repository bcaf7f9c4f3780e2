package modules

import (
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestSuites: each test is run once, with the modules that it tests.
func TestSuites(t *testing.T) {
	file := func(name, text string) source.File {
		return source.File{Name: name, Data: []byte(text), Role: source.Module}
	}
	files := []source.File{
		file("a/m.rego", "package a"), file("a/m_test.rego", "package a"),
		file("a/sub/n.rego", "package n"), file("a/sub/n_test.rego", "package n"),
		file("text/t_test.rego", "package t"),
		file("alone/o.rego", "package o"), file("alone/o_test.rego", "package o"),
		file("alone/sub/p_test.rego", "package p"),
		file("bad/b_test.rego", "package b"),
		{Name: "bad/data.json", Data: []byte("[]"), Role: source.Data},
		file("untested/u.rego", "package u"),
	}
	f := New(files, nil)
	for _, folder := range []string{"a", "a/sub", "bad", "untested"} {
		f.Folder(folder, rego.Options{V0: folder == "a/sub"}).Compile()
	}
	f.Text(rego.Module{File: "text/t.yaml", Line: 7, Source: []byte("package t")}, rego.Options{V0: true})
	var got []string
	for _, s := range f.Suites(nil) {
		line := ""
		for _, m := range s.Modules {
			line += m.File + " "
		}
		if s.Options.V0 {
			line += "V0 "
		}
		got = append(got, line+"tests "+strings.Join(s.Tests, " ")+strings.Repeat(" wrong", len(s.Errors)))
	}
	want := []string{
		"a/sub/n.rego a/sub/n_test.rego V0 tests a/sub/n_test.rego",
		"bad/b_test.rego tests bad/b_test.rego wrong",
		"a/m.rego a/m_test.rego a/sub/n.rego tests a/m_test.rego",
		"text/t_test.rego text/t.yaml V0 tests text/t_test.rego",
		"alone/o.rego alone/o_test.rego tests alone/o_test.rego",
		"alone/sub/p_test.rego tests alone/sub/p_test.rego",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := f.Unused(); !reflect.DeepEqual(got,
		[]string{"alone/o.rego", "alone/o_test.rego", "alone/sub/p_test.rego"}) {
		t.Errorf("%v are not used", got)
	}
}
