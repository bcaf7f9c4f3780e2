package balance

// MaxTries is how many endpoints a request is tried at, at most.
const MaxTries = 4

// FailedEndpoints are the endpoints at which a request has failed.
type FailedEndpoints[C any] struct {
	endpoints [MaxTries]*Endpoint[C]
	n         int
}

// Add adds an endpoint, which may be there already; it reports whether there may be another try.
func (t *FailedEndpoints[C]) Add(e *Endpoint[C]) bool {
	if t.n == MaxTries {
		return false
	}
	t.endpoints[t.n] = e
	t.n++
	return t.n < MaxTries
}

func (t *FailedEndpoints[C]) has(e *Endpoint[C]) bool {
	for _, one := range t.endpoints[:t.n] {
		if one == e {
			return true
		}
	}
	return false
}

// hasAll reports whether each of the endpoints was tried.
func (t *FailedEndpoints[C]) hasAll(endpoints []*Endpoint[C]) bool {
	for _, e := range endpoints {
		if !t.has(e) {
			return false
		}
	}
	return true
}
