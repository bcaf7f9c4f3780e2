package resource

// Applies says whether a policy or a limit applies to a request.
type Applies string

// The ways in which it applies.
const (
	Always    Applies = "Yes"
	Sometimes Applies = "Maybe"
	Never     Applies = "No"
)

// An Applicability says whether a policy, one of its bindings or a limit applies to a request, as far as
// method and path show. It is for operators.
type Applicability struct {
	Kind, Name string
	Applies    Applies
	// Because says why not, or what else decides. It is empty if nothing else does.
	Because string
	// Bindings are the bindings of a policy that has some.
	Bindings []Applicability
}

// Unless returns the applicability of what is never about the request for a reason.
func (o Applicability) Unless(because string) Applicability {
	o.Applies, o.Because, o.Bindings = Never, because, nil
	return o
}

// Also adds a remark about something that applies to the request.
func (o Applicability) Also(remark string) Applicability {
	switch {
	case o.Applies == Never || remark == "":
	case o.Because == "":
		o.Because = remark
	default:
		o.Because += "; " + remark
	}
	return o
}

// If adds a further condition for it to apply to the request.
func (o Applicability) If(condition string) Applicability {
	if o.Applies == Never {
		return o
	}
	o.Applies = Sometimes
	if o.Because != "" {
		o.Because += ", and "
	}
	o.Because += "if " + condition
	return o
}
