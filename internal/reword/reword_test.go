package reword

import (
	"slices"
	"testing"
)

// TestReword: VAL-3, VAL-4: what an author's message should say instead, and what is no business of ours.
func TestReword(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{`replicas should be more than 3`,
			`replicas must be greater than 3`},
		{`Should be set`,
			`Must be set`},
		{`owner shouldn't be set`,
			`owner must not be set`},
		{`replicas should be > 3`,
			`replicas must be greater than 3`},
		{`must have more than 3 items`,
			`must have at least 4 items`},
		{`no more than 5 containers are allowed`,
			`at most 5 containers are allowed`},
		{`must be >=1`,
			`must be greater than or equal to 1`},
		{`cpu>=100m`,
			`cpu must be greater than or equal to 100m`},
		{`must be named <name>-<suffix>`,
			`must be named <name>-<suffix>`},
		{`a -> b is not possible`,
			`a -> b is not possible`},
		{`must be a List<String>`,
			`must be a List<String>`},
		{"must hold where `a < b`",
			"must hold where `a < b`"},
		{`x => y`,
			`x => y`},
		{`must be < 10 and > 0`,
			`must be less than 10 and greater than 0`},
		{`value <= 5`,
			`value must be less than or equal to 5`},
		{`if replicas > 3 then owner is required`,
			`if replicas is greater than 3 then owner is required`},
		{`size < max`,
			`size must be less than max`},
		{"must be more than `min`",
			"must be greater than `min`"},
		{`must be larger than "min"`,
			`must be greater than 'min'`},
		{`spec.replicas must be <= 10`,
			`spec.replicas must be less than or equal to 10`},
		{`replicas must <= 10`,
			`replicas must be less than or equal to 10`},
		{`port must be in range 1 <= port <= 65535`,
			`port must be in range between 1 and 65535, inclusive`},
		{`replicas ought to be 3`,
			`replicas must be 3`},
		{`users needs to be set`,
			`users must be set`},
		{`must be greater or equal to 5`,
			`must be greater than or equal to 5`},
		{`must be greater than or equals 5`,
			`must be greater than or equal to 5`},
		{`must be bigger or equal 4`,
			`must be greater than or equal to 4`},
		{`name has to be lower case`,
			`name must be lower case`},
		{`must not contain more than one item`,
			`must contain at most one item`},
		{`must not be more than 5`,
			`must not be greater than 5`},
		{`Replicas Should Not be set`,
			`Replicas Must not be set`},
		{`replicas must be ≥ 3`,
			`replicas must be greater than or equal to 3`},
		{`use kubectl --flag=<value> >out`,
			`use kubectl --flag=<value> >out`},
		{`map<string,int> is not supported`,
			`map<string,int> is not supported`},
		{`can't be empty`,
			`must not be empty`},
		{`can not be changed`,
			`may not be changed`},
		{`cannot be changed`,
			`may not be changed`},
		{`must be 3 <> 4`,
			`must be 3 <> 4`},
		{`at least 2 replicas required, got fewer than 2`,
			`at least 2 replicas required, got less than 2`},
		{`the value must be below 100`,
			`the value must be less than 100`},
		{`see https://x/y?a=b>c`,
			`see https://x/y?a=b>c`},
		{`don't use the latest tag`,
			`don't use the latest tag`},
		{`replicas must be lower than 5`,
			`replicas must be less than 5`},
		{`must be 'a' or "b"`,
			`must be 'a' or 'b'`},
		{`says "it's"`,
			`says "it's"`},
		{`<5 replicas`,
			`less than 5 replicas`},
		{`Deployment (replicas > 5) must have a PDB`,
			`Deployment (replicas greater than 5) must have a PDB`},
		{`must be higher than min`,
			`must be greater than min`},
		{`must match ^(?P<x>a)$`,
			`must match ^(?P<x>a)$`},
		{`A should not be less than 3`,
			`A must not be less than 3`},
		{`must be shorter than 20 characters`,
			`must be less than 20 characters`},
		{`A<B`,
			`A must be less than B`},
		{`must be equal to or greater than 5`,
			`must be equal to or greater than 5`},
		{`more than one container found`,
			`more than one container found`},
		{`must be between 1 and 10`,
			`must be between 1 and 10`},
		{`each item should be unique; should match`,
			`each item must be unique; must match`},
		{`--> do not`,
			`--> do not`},
		{`a <= b <= c`,
			`must be between a and c, inclusive`},
		{`replicas must be less than 5`,
			`replicas must be less than 5`},
	} {
		better, problems := Message(c.message, nil, nil)
		if better != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.message, better, c.want)
		}
		if (len(problems) > 0) != (c.message != c.want) {
			t.Errorf("%s: problems: %q", c.message, problems)
		}
		if again, problems := Message(better, nil, nil); again != better || len(problems) > 0 {
			t.Errorf("%s is not good enough: %s %q", better, again, problems)
		}
	}
}

// TestRewordNames: literals and fields are recognised by the expression that the message is about.
func TestRewordNames(t *testing.T) {
	const (
		must  = "a requirement must be worded with 'must', not 'should'"
		value = "literals must be in single quotes"
		name  = "names of fields must be in back-quotes"
	)
	for _, c := range []struct {
		message          string
		literals, fields []string
		want             string
		problems         []string
	}{
		{"header should be nil if type is not Header", []string{"Header"}, []string{"type", "header"},
			"header must be nil if type is not 'Header'", []string{must, value}},
		{"a Header must be named", []string{"Header"}, nil, "a Header must be named", nil},
		{"namespace must not be kube-system", []string{"kube-system"}, nil, "namespace must not be 'kube-system'", []string{value}},
		{"the owner must be set", []string{"set", "owner"}, []string{"owner"}, "the owner must be set", nil},
		{"must be set together with maxReplicas", nil, []string{"maxReplicas"}, "must be set together with `maxReplicas`", []string{name}},
		{"must match spec.maxReplicas.", nil, []string{"spec", "maxReplicas"}, "must match `spec.maxReplicas`.", []string{name}},
		{"maxReplicas must match `maxReplicas`", nil, []string{"maxReplicas"}, "maxReplicas must match `maxReplicas`", nil},
		{"must be \"Cookie\" when \"type\" is set", []string{"Cookie"}, nil, "must be 'Cookie' when 'type' is set", []string{value}},
	} {
		got, problems := Message(c.message, c.literals, c.fields)
		if got != c.want || !slices.Equal(problems, c.problems) {
			t.Errorf("%s\ngot  %s %q\nwant %s %q", c.message, got, problems, c.want, c.problems)
		}
	}
}
