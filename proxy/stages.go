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
	run  func(*request) error
}

// stagesOf returns the stages of an operation, in the order in which they run. A stage that nothing in force asks for
// is not among them. docs/internals/architecture.md has the same list.
func (g *Gateway) stagesOf(s *scope, i *resource.Info, isExplained bool) []stage {
	var all []stage
	add := func(isAsked bool, name string, run func(*request) error) {
		if isAsked {
			all = append(all, stage{name, run})
		}
	}
	knowsClients := g.identity != nil
	add(s.route.cors != nil, "preflight", answerPreflight) // a browser asks before a script does
	add(true, "identify", identify)
	add(g.observers.audit != nil && s.set.Audit() != nil, "audit", beginRecording)
	if s.route.redirect != nil && !isExplained {
		add(true, "redirect", redirectByRoute)
		return all
	}
	add(knowsClients, "authenticate", authenticate)
	add(isExplained, "explain", beginStory)
	add(isExplained, "limit", explainLimits)
	add(!isExplained && s.limits != nil, "limit", enforceLimits)
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
	add(knowsClients && s.backend.grants != nil, "relay", relayPreflight)
	add(s.shadowed != nil && (!i.IsUndescribed || s.isClosed), "shadow", shadow)
	if i.IsRedirected {
		add(true, "redirect", redirectToDescribed)
		return all
	}
	if i.IsUndescribed {
		add(s.resolver.IsDescribed(), "revision", unmarkRevision) // or no answer has a mark
		add(!s.isClosed, "pass", passUndescribed)
		add(s.isClosed, "method", refuseMethod)
		return all
	}
	if i.Documented != nil {
		add(true, "revision", unmarkRevision)
		add(s.isWatched, "watch answers", watchAnswers)
		add(true, "contract", checkContract)
		add(true, "operation", passDocumented)
		return all
	}
	if s.verb == resource.VerbOptions {
		add(true, "options", s.backend.kind.options)
		return all
	}
	add(s.isPrefiltered, "prefilter", beginPrefilter)
	add(s.isRead || s.connects || !s.backend.kind.servesUpgrades(), "upgrade", refuseUpgrade)
	add(true, "revision", unmarkRevision)
	add(s.isWatched, "watch answers", watchAnswers)
	add(s.operation != nil || isExplained, "contract", checkContract)
	add(s.storage.MediaTypes().Answers != "", "negotiate", negotiate)
	add(true, "deadline", setDeadline)
	if s.backend.isDiscovered() && i.IsResource && i.APIPrefix != "" {
		add(s.isRead, "discovery", awaitDiscovery)
		add(!s.isRead, "kind", learnKind)
	}
	switch {
	case s.connects:
		add(true, "connect", connect)
	case s.isRead:
		add(true, "read", read)
	default:
		add(true, s.write.name, change)
	}
	return all
}

// authenticate refuses a client that is not known, but for the preflights of browsers, which never have credentials.
func authenticate(r *request) error {
	if r.who.refusal == nil || takeForAnonymous(r) {
		return nil
	}
	return r.who.refusal
}

// heldRetryAfter is how many seconds a client waits for files to be mended before it asks again.
const heldRetryAfter = 30

// refuseHeld refuses a request for which a folder of policy files could have policies, but has errors and never came
// into force.
func refuseHeld(r *request) error {
	f := r.scope.held
	r.gateway.metrics.FolderRefused(f.Name(), f.Owner)
	return heldError(f)
}

// heldError names the folder's owner to a client, but no file.
func heldError(f *source.Folder) error {
	return status.ServiceUnavailable(
		fmt.Sprintf("the policies of '%s' for this request have errors and are not in force", f.Owner), heldRetryAfter)
}

// unmarkRevision takes the mark of the policies that edited an answer out of the ETags that the client sends.
func unmarkRevision(r *request) error {
	r.named = compress.Unmark(&r.incoming.Head, revisionOf(r.set))
	return nil
}

// setDeadline bounds the time for which the request waits for memory by the client's own ?timeout=.
func setDeadline(r *request) error {
	r.incoming.Memory.SetDeadline(r.Deadline())
	return nil
}

// refuseUpgrade refuses a request that asks for a protocol which is not allowed for its path, if the path is described,
// or if only the other protocol answers to it.
func refuseUpgrade(r *request) error {
	head := &r.incoming.Head
	switch {
	case r.upgrade.protocol != nil || !isTunnelled(head.Upgrade):
		return nil
	case !r.route.backend.kind.servesUpgrades():
	case head.IsExtendedConnect():
		return status.BadRequest("an upgrade to the protocol '%s' is not allowed for the path '%s'", head.Upgrade,
			pathOf(head.Target))
	default:
		return nil // and the request is answered as if it asked for none
	}
	return status.BadRequest("the path '%s' is described, and what is described is not served in the protocol '%s'", pathOf(head.Target), head.Upgrade)
}
