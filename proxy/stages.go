package proxy

import (
	"fmt"

	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/policies/source"
)

// A stage is a step in the way of a request.
type stage struct {
	name string
	run  func(*handler) error
}

// stagesOf returns the stages of an operation, in the order in which they run. A stage that nothing in force asks for
// is not among them. docs/internals/architecture.md has the same list.
func (g *Gateway) stagesOf(s *scope, i *resource.Info, isExplained bool) []stage {
	var all []stage
	add := func(isAsked bool, name string, run func(*handler) error) {
		if isAsked {
			all = append(all, stage{name, run})
		}
	}
	knowsClients := g.identity != nil
	add(s.route.cors != nil, "preflight", (*handler).answerPreflight) // a browser asks before a script does
	add(true, "identify", (*handler).identify)
	add(g.observers.audit != nil && s.set.Audit() != nil, "audit", beginRecording)
	if s.route.redirect != nil && !isExplained {
		add(true, "redirect", redirectByRoute)
		return all
	}
	add(knowsClients, "authenticate", (*handler).authenticate)
	add(isExplained, "explain", beginStory)
	add(isExplained, "limit", (*handler).explainLimits)
	add(!isExplained && s.limits != nil, "limit", (*handler).enforceLimits)
	switch {
	case s.held != nil:
		add(true, "hold", refuseHeld)
		return all
	case s.route.redirect != nil:
		add(true, "redirect", redirectByRoute)
		return all
	case s.route.obstacle != nil:
		add(true, "obstacle", refuseByRoute)
		return all
	}
	add(s.route.mirrors != nil, "mirror", mirrorRequest)
	add(knowsClients && s.backend.grants != nil, "relay", (*handler).relayPreflight)
	add(s.tried != nil && (!i.IsUndescribed || s.isClosed), "try", (*handler).try)
	if i.IsRedirected {
		add(true, "redirect", (*handler).redirect)
		return all
	}
	if i.IsUndescribed {
		add(s.resolver.IsDescribed(), "revision", (*handler).unmarkRevision) // or no answer has a mark
		add(!s.isClosed, "pass", (*handler).passUndescribed)
		add(s.isClosed, "method", (*handler).refuseMethod)
		return all
	}
	if i.Documented != nil {
		add(true, "revision", (*handler).unmarkRevision)
		add(s.isWatched, "watch answers", (*handler).watchAnswers)
		add(true, "contract", (*handler).checkContract)
		add(true, "operation", (*handler).passDocumented)
		return all
	}
	if s.verb == resource.VerbOptions {
		add(true, "options", s.backend.kind.options)
		return all
	}
	add(s.isForeseen, "foresee", (*handler).foresee)
	add(s.isRead || s.connects || !s.backend.kind.servesUpgrades(), "upgrade", (*handler).refuseUpgrade)
	add(true, "revision", (*handler).unmarkRevision)
	add(s.isWatched, "watch answers", (*handler).watchAnswers)
	add(s.operation != nil || isExplained, "contract", (*handler).checkContract)
	add(s.storage.MediaTypes().Answers != "", "negotiate", (*handler).negotiate)
	add(true, "deadline", (*handler).setDeadline)
	if s.backend.isDiscovered() && i.IsResource && i.APIPrefix != "" {
		add(s.isRead, "discovery", (*handler).awaitDiscovery)
		add(!s.isRead, "kind", (*handler).learnKind)
	}
	switch {
	case s.connects:
		add(true, "connect", (*handler).connect)
	case s.isRead:
		add(true, "read", (*handler).read)
	default:
		add(true, s.attempt.name, (*handler).change)
	}
	return all
}

// authenticate refuses a client that is not known, but for the preflights of browsers, which never have credentials.
func (h *handler) authenticate() error {
	if h.who.refusal == nil || takeForAnonymous(h) {
		return nil
	}
	return h.who.refusal
}

// heldRetryAfter is how many seconds a client waits for files to be mended before it asks again.
const heldRetryAfter = 30

// refuseHeld refuses a request for which a folder of policy files could have policies, but has errors and never came into
// force.
func refuseHeld(h *handler) error {
	f := h.scope.held
	h.gateway.metrics.FolderRefused(f.Name(), f.Owner)
	return heldError(f)
}

// heldError names the folder's owner to a client, but no file.
func heldError(f *source.Folder) error {
	return status.ServiceUnavailable(fmt.Sprintf("the policies of '%s' for this request have errors and are not in force", f.Owner), heldRetryAfter)
}

// foresee lets the policies be asked before an object is read, if that may spare it.
func (h *handler) foresee() error {
	h.admission.foresee()
	return nil
}

// unmarkRevision takes the mark of the policies that edited an answer out of the ETags that the client sends.
func (h *handler) unmarkRevision() error {
	h.named = compress.Unmark(&h.incoming.Head, revisionOf(h.set))
	return nil
}

// setDeadline bounds the time for which the request waits for memory by the client's own ?timeout=.
func (h *handler) setDeadline() error {
	h.incoming.Memory.SetDeadline(h.request.Deadline())
	return nil
}
