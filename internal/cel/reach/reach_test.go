package reach

import (
	"strings"
	"testing"
)

func number(f float64) *float64 { return &f }

func self() map[string]*Shape {
	return map[string]*Shape{"self": {Type: "object", IsSet: true, Fields: map[string]*Shape{
		"replicas": {Type: "integer", Min: number(1), Max: number(5), IsSet: true},
		"limit":    {Type: "integer", Max: number(9)},
		"mode":     {Type: "string", Enum: []string{"A", "B"}, IsSet: true},
		"name":     {Type: "string", MaxSize: number(8), IsSet: true},
		"tags":     {Type: "array", MaxSize: number(3), IsSet: true, Items: &Shape{Type: "integer", Min: number(0), Max: number(2)}},
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
		roots := map[string]*Shape{"object": {Fields: map[string]*Shape{"n": {Type: "integer", IsSet: true}, "s": {Type: "string", IsSet: true}}}}
		o := Given(c.expression, strings.Split(c.conditions, ";"), roots)
		if o.CanBeTrue != c.yes || o.CanBeFalse != c.no {
			t.Errorf("%s given %s: %+v", c.expression, c.conditions, o)
		}
	}
}

func TestNames(t *testing.T) {
	if got := strings.Join(Names("state.classes.exists(c, c.x) && state.a == variables.b", "state"), " "); got != "a classes" {
		t.Error(got)
	}
}
