package config

import (
	"fmt"
	"slices"
)

// Explanations says which users may ask, by the header X-Admission-Explain, what becomes of a
// request.
type Explanations struct {
	// Users and Groups are the names of those users and groups.
	Users  []string `json:"users"`
	Groups []string `json:"groups"`
	// Values says what explanations show of other objects than the one in the request.
	Values ExplainedValues `json:"values"`
}

// ExplainedValues says what explanations show of other objects than the one in the request: the stored
// object, parameters, namespaces and collections.
type ExplainedValues string

// What they can show.
const (
	// ShowDigests shows of each value a digest, by which equal values of one explanation are known.
	ShowDigests ExplainedValues = "Digests"
	// ShowValues shows the values, except data of Secrets.
	ShowValues ExplainedValues = "Shown"
)

var explainedValues = []ExplainedValues{ShowDigests, ShowValues}

func defaultExplanations() *Explanations { return &Explanations{Values: ShowDigests} }

// Allows reports whether a user may ask for explanations.
func (e *Explanations) Allows(user string, groups []string) bool {
	return e != nil && (slices.Contains(e.Users, user) ||
		slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.Groups, g) }))
}

// checkExplanations checks the users and groups that may ask. Only known users may.
func checkExplanations(v *validator, path string, e *Explanations, identity *Identity) {
	if e == nil {
		return
	}
	if !identity.Knows() {
		v.check(path, "must not be set without `identity`, which says who asks")
	}
	if len(e.Users)+len(e.Groups) == 0 {
		v.check(path, "must name at least one of `users` or `groups`")
	}
	checkCallers(v, path+".users", e.Users, "system:anonymous")
	checkCallers(v, path+".groups", e.Groups, "system:unauthenticated")
	oneOf(v, path+".values", e.Values, explainedValues)
}

// checkCallers checks the names of users or groups.
func checkCallers(v *validator, path string, names []string, unknown string) {
	for i, one := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case one == "":
			v.check(at, "Required value: must not be empty")
		case one == unknown:
			v.check(at, fmt.Sprintf("must not be '%s': only who is known may ask", unknown))
		case slices.Contains(names[:i], one):
			v.check(at, fmt.Sprintf("must be unique; '%s' is listed twice", one))
		}
	}
}
