package plain

import (
	"net/http"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A Proof says who compares the preconditions of writes where `preconditions: Auto` depends on what the backend was
// seen to do.
type Proof struct {
	// ByBackend says that the backend compares them; else the gateway does.
	ByBackend bool
	// Because says what is known of the backend.
	Because string
	// Since is when it was found out; zero if it is not known yet.
	Since time.Time
}

// String returns the proof as operators read it.
func (p Proof) String() string {
	who := "the gateway compares"
	if p.ByBackend {
		who = "the backend compares"
	}
	text := who + ", because " + p.Because
	if !p.Since.IsZero() {
		text += " (since " + p.Since.UTC().Format(time.RFC3339) + ")"
	}
	return text
}

// Proof returns who compares the preconditions of requests of a method now. It is not ok if that does not depend on
// what the backend was seen to do. locksAlone is as in Options.
func (c *Comparisons) Proof(r *resource.Resource, method string, locksAlone bool) (p Proof, ok bool) {
	isWrite := method == http.MethodPut || method == http.MethodPatch
	if r == nil || !isWrite || r.Backend.Preconditions != resource.AutoPreconditions ||
		!comparesPreconditions(&Options{Resource: r, LocksAlone: locksAlone}) {
		return Proof{}, false
	}
	c.mu.Lock()
	one := c.of[r.GroupResource()]
	c.mu.Unlock()
	if one == nil {
		one = &Comparison{}
	}
	return one.proof(method), true
}

func (c *Comparison) proof(method string) Proof {
	f := c.of(method)
	switch found, etags := f.get(), c.etags.get(); {
	case c.isVarying():
		return Proof{Because: "reads of one object differ although nobody writes it", Since: c.reads.at()}
	case etags == Weak:
		return Proof{Because: "the backend's ETags are weak", Since: c.etags.at()}
	case etags == None:
		return Proof{Because: "the backend gives objects without ETags", Since: c.etags.at()}
	case found == Compared && c.givesStrong():
		return Proof{ByBackend: true, Because: "it refused a " + method + " that named another version", Since: f.at()}
	case found == NotCompared:
		return Proof{Because: "the backend carried out a " + method + " that named another version", Since: f.at()}
	case found == Unclear:
		return Proof{Because: "the backend's answers to a " + method + " that names another version show nothing",
			Since: f.at()}
	}
	return Proof{Because: "no " + method + " has shown yet whether the backend does"}
}
