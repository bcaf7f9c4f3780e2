package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/status"
)

// Check is one named condition of health. Its name is one segment of a path.
type Check struct {
	Name string
	// Probe returns nil if all is well, else what is not, in a few words. A Warning lets the check pass.
	// It must answer at once.
	Probe func() error
	// Age returns how long ago what the check looks at was last known to be right. It may be nil, and a zero age is not
	// shown.
	Age func() time.Duration
}

// age is what a report says of the age of a check.
func (c *Check) age() string {
	if c.Age == nil {
		return ""
	}
	age := c.Age()
	if age <= 0 {
		return ""
	}
	return fmt.Sprintf(" (last known to be right %d s ago)", int64(age.Seconds()))
}

// A Warning says what is wrong although requests are served.
type Warning struct{ Err error }

func (w Warning) Error() string { return w.Err.Error() }

func (w Warning) Unwrap() error { return w.Err }

// checks are the conditions of one page of health.
type checks struct {
	endpoint string
	all      []Check
}

// serve answers for the check of that name, or for all without a name. As with Kubernetes'
// components the answer is "ok", or lists every check if one fails or if the client asks for
// ?verbose. A failure is 503.
func (c checks) serve(ctx *fasthttp.RequestCtx, name string) {
	asked := c.all
	if name != "" {
		asked = nil
		for _, one := range c.all {
			if one.Name == name {
				asked = []Check{one}
			}
		}
		if asked == nil {
			writeError(ctx, status.NoSuchPath("/%s has no check '%s'", c.endpoint, name))
			return
		}
	}
	var report strings.Builder
	failed := false
	for _, one := range asked {
		var warning Warning
		switch err := one.Probe(); {
		case errors.As(err, &warning):
			fmt.Fprintf(&report, "[+]%s ok, but: %v%s\n", one.Name, warning, one.age())
		case err != nil:
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", one.Name, err)
		default:
			fmt.Fprintf(&report, "[+]%s ok%s\n", one.Name, one.age())
		}
	}
	ctx.SetContentType("text/plain; charset=utf-8")
	switch {
	case failed:
		ctx.SetStatusCode(http.StatusServiceUnavailable)
		fmt.Fprintf(&report, "%s check failed\n", c.endpoint)
	case ctx.QueryArgs().Has("verbose"):
		fmt.Fprintf(&report, "%s check passed\n", c.endpoint)
	default:
		report.Reset()
		report.WriteString("ok\n")
	}
	ctx.SetBodyString(report.String())
}
