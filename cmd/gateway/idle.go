package main

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// idle keeps which places of the policy files apply to no request, as the API servers are known to be.
type idle struct {
	shown   atomic.Pointer[[]applicability.Inapplicable] // nil until it is judged for the first time
	changed chan struct{}                                // something may have changed since
}

func newIdle() *idle { return &idle{changed: make(chan struct{}, 1)} }

// mayChange asks for another judgement, which is made soon.
func (i *idle) mayChange() { ask(i.changed) }

// judgeIdle judges which places of the policy files apply to no request, and logs what is no longer as it was.
func (n *node) judgeIdle() {
	now := n.manager.Load().Current().Applicability().NotApplying(n.gateway.Load().Live())
	var before []applicability.Inapplicable
	if was := n.idle.shown.Swap(&now); was != nil {
		before = *was
	}
	for i := range now {
		if !slices.Contains(before, now[i]) && now[i].Reason != applicability.ReasonUnused {
			n.log.Warn("a place of the policy files applies to no request", now[i].At.Attributes()...)
		}
	}
	for i := range before {
		if !slices.Contains(now, before[i]) && before[i].Reason != applicability.ReasonUnused {
			n.log.Info("a place of the policy files applies to no request no longer", before[i].At.Attributes()...)
		}
	}
}

// keepIdle judges again after each change, until done is closed.
func (n *node) keepIdle(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-n.idle.changed:
			n.judgeIdle()
		}
	}
}

// idlePlaces returns the places of the policy files that apply to no request.
func (n *node) idlePlaces() []applicability.Inapplicable {
	if all := n.idle.shown.Load(); all != nil {
		return *all
	}
	return nil
}

// measureIdle counts the places of the policy files that apply to no request, by reason.
func (n *node) measureIdle() map[string]int {
	counts := make(map[string]int, len(applicability.Reasons))
	for _, reason := range applicability.Reasons {
		counts[string(reason)] = 0
	}
	for _, one := range n.idlePlaces() {
		counts[string(one.Reason)]++
	}
	return counts
}

// describeIdle shows operators the places of the policy files that apply to no request.
func (n *node) describeIdle() []admin.Idle {
	shown := []admin.Idle{}
	for _, one := range n.idlePlaces() {
		shown = append(shown, idleOf(&one))
	}
	return shown
}

func idleOf(one *applicability.Inapplicable) admin.Idle {
	at := one.At.File
	if one.At.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", at, one.At.Line, one.At.Column)
	}
	return admin.Idle{Kind: one.Kind, Name: one.Name, Reason: string(one.Reason), Place: at, Field: one.At.Field,
		Message: one.At.Message, Rule: one.At.Rule}
}

// writeIdle writes the places of the policy files that apply to no request.
func writeIdle(w *bytes.Buffer, all []admin.Idle) {
	for i := range all {
		if i == 0 {
			fmt.Fprint(w, "\nAPPLIES TO NOTHING\tPLACE\tREASON\tBECAUSE\n")
		}
		one := &all[i]
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", one.Kind, one.Name, one.Place, one.Reason, one.Because())
	}
}
