package proxy

import (
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
)

// An editing is what the filters of a route change of the head of a request, and of the copies for its mirrors.
type editing struct{ request, copies *message.Edits }

// editingOf returns what the filters of a route may change of the requests of an operation. The backend must not take a
// request that was judged for another one, nor one that passes for one that files describe: lines that say what a body
// is, which method or path is meant, or on which condition, stay as the client sent them.
func editingOf(r *route, i *resource.Info, isDescribed bool) (e editing, left []string) {
	var kept message.FieldSet
	if isDescribed {
		kept = message.Paths
	}
	if !i.IsUndescribed || i.IsOtherMethod || r.undescribed == config.DenyWrites {
		kept |= message.Paths | message.Judged
	}
	e.request, left = r.edits.Without(kept)
	e.copies, _ = r.mirrorEdits.Without(kept)
	return e, left
}

// sayLeft says in the log that filters of a route do not change header lines.
func (g *Gateway) sayLeft(r *route, left []string) {
	if len(left) == 0 {
		return
	}
	if times, tell := g.often.failures.Allow("edits "+r.place.Route+" "+r.place.Rule, time.Now()); tell {
		g.log.Warn("filters of a route do not edit header lines of requests that policy files describe", "route", r.place.Route, "rule", r.place.Rule,
			"headers", strings.Join(left, ", "), "times", times)
	}
}
