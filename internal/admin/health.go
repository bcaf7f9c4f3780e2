package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/status"
)

// Check is one named condition of health. Its name is one segment of a path.
type Check struct {
	Name string
	// Probe returns nil if all is well, else what is not, in a few words. It must answer at once.
	Probe func() error
}

// checks serves all of them, or the one that the path names. As with Kubernetes' components the answer is "ok", or lists
// every check if one fails or if the client asks for ?verbose. A failure is 503.
type checks struct {
	endpoint string
	all      []Check
}

func (c checks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := c.all
	if name := r.PathValue("check"); name != "" {
		asked = nil
		for _, one := range c.all {
			if one.Name == name {
				asked = []Check{one}
			}
		}
		if asked == nil {
			writeError(w, status.NoSuchPath("/%s has no check '%s'", c.endpoint, name))
			return
		}
	}
	var report strings.Builder
	failed := false
	for _, one := range asked {
		if err := one.Probe(); err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", one.Name, err)
		} else {
			fmt.Fprintf(&report, "[+]%s ok\n", one.Name)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case failed:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(&report, "%s check failed\n", c.endpoint)
	case r.URL.Query().Has("verbose"):
		fmt.Fprintf(&report, "%s check passed\n", c.endpoint)
	default:
		report.Reset()
		report.WriteString("ok\n")
	}
	_, _ = w.Write([]byte(report.String())) // the client may be gone
}
