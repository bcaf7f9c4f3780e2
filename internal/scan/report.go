package scan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Effect says what a finding means for its object.
type Effect string

// The effects.
const (
	Deny     Effect = "deny"     // it would be refused
	Warn     Effect = "warn"     // its client would be warned
	Audit    Effect = "audit"    // the audit log would have it
	Ignored  Effect = "ignored"  // a policy failed, and may
	Unjudged Effect = "unjudged" // it cannot be judged, and would be refused for that
	Change   Effect = "change"   // the policies make another object of it
)

// How the verdicts of two sets differ.
const (
	Added    = "added"
	Removed  = "removed"
	Reworded = "reworded"
	Edited   = "edited"
	// Refused and Accepted count objects that are denied by one set alone.
	Refused  = "newlyDenied"
	Accepted = "noLongerDenied"
)

// A Finding is one finding on one object.
type Finding struct {
	// Change says how the two sets differ about the object; empty if one set judges.
	Change  string `json:"change,omitempty"`
	Effect  Effect `json:"effect"`
	Policy  string `json:"policy,omitempty"`
	Binding string `json:"binding,omitempty"`

	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`

	Source  string `json:"source,omitempty"`
	Line    int64  `json:"line,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Old is the message of the old set, if it was another one.
	Old string `json:"old,omitempty"`
}

// Object names the object.
func (f *Finding) Object() string {
	name := f.Resource
	if f.Group != "" {
		name += "." + f.Group
	}
	if name == "" {
		name = f.Place()
	}
	switch {
	case f.Namespace != "":
		name += " " + f.Namespace + "/" + f.Name
	case f.Name != "":
		name += " " + f.Name
	}
	return name
}

// Place says where the object was read.
func (f *Finding) Place() string {
	if f.Line == 0 {
		return f.Source
	}
	return f.Source + ":" + strconv.FormatInt(f.Line, 10)
}

// A Report says what a scan found.
type Report struct {
	*Tally
	// As says how the objects were judged; IsDiff says that two sets were compared.
	As      Operation `json:"as"`
	IsDiff  bool      `json:"diff,omitempty"`
	GroupBy string    `json:"groupBy,omitempty"`
	// Listed are the first findings; Findings counts all.
	Listed []Finding `json:"listed"`
	// Unused are policies that no object was about.
	Unused []string `json:"unused,omitempty"`
	// Notes say what a reader has to know.
	Notes   []string `json:"notes,omitempty"`
	Seconds float64  `json:"seconds"`
}

// Fails reports whether an object would be refused, or could not be judged; of a comparison, whether it would be and
// was not.
func (r *Report) Fails() bool {
	if r.IsDiff {
		return r.Changes[Refused] > 0
	}
	return r.Denied > 0 || r.Unjudged > 0
}

func (s *scan) report(took time.Duration) *Report {
	r := &Report{
		Tally: s.tally, As: s.options.As, IsDiff: s.options.Old != nil, GroupBy: s.options.GroupBy, Listed: s.listed,
		Notes:   s.notes.all,
		Seconds: took.Seconds(),
	}
	if r.Listed == nil {
		r.Listed = []Finding{}
	}
	for _, name := range s.options.New.Set.Admission().Names() {
		if r.Policies[name] == nil && !slices.Contains(r.Unused, name) {
			r.Unused = append(r.Unused, name)
		}
	}
	slices.Sort(r.Unused)
	if r.Denied+r.Unjudged+r.Warned+r.Audited == 0 && r.Objects == 0 {
		r.Notes = append(r.Notes, "no object was judged")
	}
	return r
}

// A row is a count with its name.
type row[T any] struct {
	Name  string
	Count *T
}

// rows returns counts, the largest first.
func rows[T any](of map[string]*T, size func(*T) int64) []row[T] {
	all := make([]row[T], 0, len(of))
	for name, c := range of {
		all = append(all, row[T]{name, c})
	}
	slices.SortFunc(all, func(a, b row[T]) int {
		return cmp.Or(cmp.Compare(size(b.Count), size(a.Count)), strings.Compare(a.Name, b.Name))
	})
	return all
}

func (r *Report) policies() []row[PolicyTally] {
	return rows(r.Policies, func(p *PolicyTally) int64 { return p.Denied<<20 + p.Audited + p.Failed })
}

func parts(of map[string]*Counts) []row[Counts] {
	return rows(of, func(p *Counts) int64 { return p.Denied + p.Unjudged })
}

// A table has counts of one kind of parts.
type table struct {
	Title string
	Rows  []row[Counts]
}

// maxRows is how many rows a table of a report has.
const maxRows = 50

// tables returns the tables of the report.
func (r *Report) tables() (all []table) {
	add := func(title string, of map[string]*Counts) {
		if len(of) > 0 {
			all = append(all, table{title, firstRows(parts(of))})
		}
	}
	add("resource", r.Resources)
	if name, isLabel := strings.CutPrefix(r.GroupBy, "label="); isLabel {
		add("label "+name, r.Groups)
	} else {
		add(r.GroupBy, r.Groups)
	}
	return all
}

// firstRows returns the first rows, and one for all others.
func firstRows(all []row[Counts]) []row[Counts] {
	if len(all) <= maxRows {
		return all
	}
	rest := map[string]*Counts{}
	for _, one := range all[maxRows-1:] {
		addParts(rest, map[string]*Counts{others: one.Count})
	}
	return append(all[:maxRows-1:maxRows-1], row[Counts]{others, rest[others]})
}
