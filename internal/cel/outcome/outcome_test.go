package outcome

import (
	"strings"
	"testing"
)

func number(f float64) *float64 { return &f }

func self() map[string]*Shape {
	return map[string]*Shape{"old": {Type: Null}, "self": {Type: "object", IsSet: true, Fields: map[string]*Shape{
		"replicas": {Type: "integer", Min: number(1), Max: number(5), IsSet: true},
		"limit":    {Type: "integer", Max: number(9)},
		"mode":     {Type: "string", Enum: []string{"A", "B"}, IsSet: true},
		"name":     {Type: "string", MaxSize: number(8), IsSet: true},
		"tags": {Type: "array", MaxSize: number(3), IsSet: true,
			Items: &Shape{Type: "integer", Min: number(0), Max: number(2)}},
	}}}
}

// Outcomes are t, f and e for: can be true, can be false, can fail.
func TestOf(t *testing.T) {
	for expression, want := range map[string]string{
		"self.replicas > 10":                            "f",
		"self.replicas <= 5":                            "t",
		"self.replicas < 5":                             "tf",
		"self.replicas >= 1 && self.replicas <= 9":      "t",
		"self.replicas != 7":                            "t",
		"self.replicas == 7":                            "f",
		"6 > self.replicas":                             "t",
		"self.limit <= 9":                               "te",
		"!has(self.limit) || self.limit <= 9":           "t",
		"!has(self.limit) || self.limit > 9":            "tf",
		"has(self.limit) && self.limit > 9":             "f",
		"has(self.replicas)":                            "t",
		"self.mode == 'C'":                              "f",
		"self.mode in ['A', 'B', 'C']":                  "t",
		"self.mode in ['C']":                            "f",
		"self.mode != 'A'":                              "tf",
		"size(self.name) <= 8":                          "t",
		"self.name.size() > 8":                          "f",
		"self.name.startsWith('a')":                     "tfe",
		"self.tags.all(x, x <= 2)":                      "t",
		"self.tags.all(x, x > 2)":                       "t" + "f",
		"self.tags.exists(x, x > 2)":                    "f",
		"self.replicas > 3 && self.replicas < 4":        "f",
		"self.replicas > 3 || self.replicas <= 3":       "t",
		"self.replicas > -1":                            "t",
		"self.unknown > 3":                              "tfe",
		"self.replicas >":                               "tfe",
		"true":                                          "t",
		"!(self.replicas > 5)":                          "t",
		"old == null":                                   "t",
		"old != null":                                   "f",
		"self != null":                                  "t",
		"old.mode == 'A'":                               "e",
		"has(old.mode)":                                 "e",
		"size(old.tags) < 3":                            "e",
		"old.tags.all(x, x < 2)":                        "e",
		"old.name.startsWith('a')":                      "e",
		"!(old.mode == 'A')":                            "e",
		"old.mode == self.mode":                         "e",
		"old.mode in ['A']":                             "e",
		"old.mode == 'A' || self.mode == 'A'":           "te",
		"self.mode == 'A' || old.mode == 'A'":           "te",
		"old.mode == 'A' && self.mode == 'A'":           "fe",
		"old.mode == 'A' && self.replicas > 9":          "f",
		"old == null || old.mode == self.mode":          "t",
		"old != null && old.mode == self.mode":          "f",
		"old != null ? old.mode == 'A' : true":          "tfe",
		"old.?mode.orValue('A') == 'A'":                 "tfe",
		"self.mode == 'A' ? true : self.replicas < 100": "tfe",
	} {
		o := Of(expression, self())
		got := ""
		for _, one := range []struct {
			is   bool
			text string
		}{{o.CanBeTrue, "t"}, {o.CanBeFalse, "f"}, {o.CanFail, "e"}} {
			if one.is {
				got += one.text
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}

func TestGiven(t *testing.T) {
	for _, c := range []struct {
		expression, conditions string
		yes, no                bool
	}{
		{"object.n > 1", "object.n > 3", true, false},
		{"object.n > 3", "object.n > 1", true, true},
		{"object.n < 3", "object.n > 5", false, true},
		{"object.s == 'a'", "object.s == 'b'", false, true},
		{"object.s in ['a', 'b']", "object.s == 'b'", true, false},
	} {
		roots := map[string]*Shape{
			"object": {Fields: map[string]*Shape{"n": {Type: "integer", IsSet: true},
				"s": {Type: "string", IsSet: true}}}}
		o := Given(c.expression, strings.Split(c.conditions, ";"), roots)
		if o.CanBeTrue != c.yes || o.CanBeFalse != c.no {
			t.Errorf("%s given %s: %+v", c.expression, c.conditions, o)
		}
	}
}

func TestNames(t *testing.T) {
	if got := strings.Join(Names("state.classes.exists(c, c.x) && state.a == variables.b", "state"),
		" "); got != "a classes" {
		t.Error(got)
	}
}

func TestStrays(t *testing.T) {
	for expression, want := range map[string]string{
		"self.mode == 'A'": "", "'B' != self.mode": "", "self.mode != ''": "", "self.name == 'C'": "",
		"self.unknown == 'C'": "",
		"self.mode == 'C'":    "self.mode C", "self.replicas > 1 || 'C' != self.mode": "self.mode C",
		"self.mode in ['A', 'b', 'c']":       "self.mode b; self.mode c",
		"self.tags.all(x, self.mode == 'a')": "self.mode a", "self.mode ==": "",
	} {
		var got []string
		for _, s := range Strays(expression, self()) {
			got = append(got, s.Path+" "+s.Text)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %v, want %s", expression, got, want)
		}
	}
}

// TestUnset: the fields that may be missing where an expression reads them.
func TestUnset(t *testing.T) {
	for expression, want := range map[string]string{
		"self.limit > 3": "self.limit", "has(self.limit) && self.limit > 3": "",
		"!has(self.limit) || self.limit > 3":  "",
		"self.replicas > 3 || self.limit > 3": "self.limit", "self.replicas > 3": "",
		"has(self.limit) ? self.limit > 3 : true": "", "self.limit > self.replicas": "self.limit",
	} {
		if got := strings.Join(Of(expression, self()).Unset, " "); got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}

func TestPatches(t *testing.T) {
	got := Patches("has(object.a) ? [JSONPatch{op: 'add', path: '/a', value: 1}] : [JSONPatch{op: object.op, path: '/b', value: object.c}, Other{op: 'add'}]")
	if len(got) != 2 || *got[0].Op != "add" || *got[0].Path != "/a" || got[0].Value != int64(1) ||
		len(got[0].Members) != 3 {
		t.Fatalf("%+v", got)
	}
	if got[1].Op != nil || *got[1].Path != "/b" || got[1].Value != nil || got[1].From != nil {
		t.Errorf("%+v", got[1])
	}
	if Patches("[JSONPatch{") != nil {
		t.Error("a part of an expression has patches")
	}
}
