package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/tools/limits"
	"github.com/admission-gateway/gateway/tools/load/loadtest"
)

func TestMeasure(t *testing.T) {
	files := map[string]string{
		"small/small.go": "package small\n\nimport \"crypto/tls\"\n\n" +
			"type Fits struct {\n" + lines("F%d int", 17) + lines("B%d bool", 3) + "}\n\n" +
			"type LongConfig struct {\n" + lines("F%d bool", 30) + "}\n\n" +
			"type Three struct{ A, B, C bool }\n\n" +
			"type TLS struct {\n*tls.Config\n" + lines("F%d int", 19) + "}\n\n" +
			"type Holds struct {\nNamed Three\nOther Fits\n}\n\n" +
			methods("Fits", 40),
		"large/large.go": "package large\n\nimport \"example.com/m/small\"\n\ntype flag bool\n\n" +
			"type Fields struct {\n" + lines("F%d int", 21) + "}\n\n" +
			"type Booleans struct { A, B, C bool; D flag }\n\n" +
			"type Embeds struct {\n*small.Three\nX bool\nsmall.Fits\n}\n\n" +
			"type Inner struct{ In struct{ A, B bool }; C, D bool }\n\n" +
			methods("*Fields", 41),
	}
	for i := range 29 {
		files[fmt.Sprintf("small/f%d.go", i)] = "package small\n"
		files[fmt.Sprintf("large/f%d.go", i)] = "package large\n"
		files[fmt.Sprintf("small/f%d_test.go", i)] = "package small\n"
	}
	files["large/more.go"] = "package large\n"

	counts := limits.Counts{}
	for _, p := range loadtest.Module(t, files) {
		measure(p, counts)
	}
	want := limits.Counts{
		"files of large":             31,
		"methods of large.Fields":    41,
		"fields of large.Fields":     21,
		"booleans of large.Booleans": 4,
		"fields of large.Embeds":     24,
		"booleans of large.Embeds":   7,
		"booleans of large.Inner":    4,
	}
	if !maps.Equal(counts, want) {
		t.Errorf("counts %v, want %v", counts, want)
	}
}

func lines(format string, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format+"\n", i)
	}
	return text.String()
}

func methods(of string, n int) string { return lines("func ("+of+") M%d() {}", n) }
