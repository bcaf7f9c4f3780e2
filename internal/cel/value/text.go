package value

// Libraries print a value in the errors of functions that do not take it. It is shown by its type alone: by its fields
// it would show addresses.

// String implements fmt.Stringer.
func (o *Map) String() string { return o.Type().TypeName() }

// String implements fmt.Stringer.
func (l *List) String() string { return l.Type().TypeName() }

// String implements fmt.Stringer.
func (l *Documents) String() string { return l.Type().TypeName() }

// String implements fmt.Stringer.
func (r *Record) String() string { return r.Type().TypeName() }

// String implements fmt.Stringer.
func (m *Made) String() string { return m.Type().TypeName() }

// String implements fmt.Stringer.
func (p *preserved) String() string { return p.Type().TypeName() }

// Ordered is a map whose iterator has the same order each time.
type Ordered interface{ InOrder() }

// InOrder implements Ordered. It is the order of the document.
func (o *Map) InOrder() {}

// InOrder implements Ordered.
func (r *Record) InOrder() {}
