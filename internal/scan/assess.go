package scan

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/proxy"
)

// A trial is a write as a source describes it.
type trial struct {
	method, target []byte
	host           []byte // of a client's target
	upstream       string // whose paths the target has; "" for a client's
	isStored       bool   // it replaced an object, whether or not that is known
	body, old      []byte
	object         *document.Document
	user           *identity.User
}

// A worker judges batches. It belongs to one goroutine.
type worker struct {
	scan     *scan
	sides    []*assessor // the new set, and the old one if there is one
	placer   placer
	trial    trial
	tally    *Tally
	batch    *batch
	isDiff   bool
	verdicts [2]verdict
}

// An assessor is a set's.
type assessor struct {
	*proxy.DryRunner
	decisions decisions
}

// A verdict has all findings of a set on an object.
type verdict struct {
	effects []effect
	object  []byte
	isKnown bool // object is
}

// An effect is one finding of a set on an object.
type effect struct {
	Effect                  Effect
	policy, binding         string
	field, message, fullOld string
}

func (s *scan) newWorker() *worker {
	w := &worker{scan: s, placer: placer{set: s.options.New.Set}, isDiff: s.options.Old != nil}
	w.sides = append(w.sides, &assessor{DryRunner: s.options.New.Gateway.NewDryRunner()})
	if s.options.Old != nil {
		w.sides = append(w.sides,
			&assessor{DryRunner: s.options.Old.Gateway.NewDryRunner(), decisions: decisions{tally: newTally()}})
	}
	return w
}

// assess judges the items of a batch.
func (w *worker) assess(b *batch) {
	w.batch, w.tally = b, b.tally
	w.sides[0].decisions.tally = b.tally
	for i := range b.items {
		one := &b.items[i]
		w.trial = trial{user: &w.scan.options.User, upstream: w.scan.options.Upstream}
		if skipped := one.shape.read(w, b.text[one.start:one.end], one); skipped != "" {
			if w.trial.object != nil {
				w.trial.object.Release()
			}
			if skipped != isCounted {
				w.tally.Skipped[skipped]++
			}
		} else {
			w.item(one)
		}
	}
	if w.isDiff {
		w.sides[1].decisions.tally.reset()
	}
}

// item judges an item, by both sets if there are two.
func (w *worker) item(i *item) {
	w.tally.Objects++
	group := w.scan.group.of(&w.trial)
	outcome := w.try(0)
	if reason := unjudgeable(outcome.Err); reason != "" {
		w.tally.Objects--
		w.tally.Skipped[reason]++
		return
	}
	if outcome.IsConcerned {
		w.tally.Assessed++
	}
	v := &w.verdicts[0]
	v.read(outcome)
	parts := w.parts(outcome, group)
	w.count(v.effects, parts)
	if !w.isDiff {
		if len(v.effects) > 0 {
			about := w.about(outcome, i)
			for k := range v.effects {
				w.found("", &v.effects[k], &about)
			}
		}
		return
	}
	v.keep(outcome)
	about := w.about(outcome, i)
	before := w.try(1)
	w.verdicts[1].read(before)
	w.verdicts[1].keep(before)
	w.compare(&about)
}

// try lets a set judge the trial.
func (w *worker) try(side int) *proxy.Outcome {
	t, j := &w.trial, w.sides[side]
	j.decisions.passed = 0
	object := t.object // the second judge parses the body itself
	t.object = nil
	return j.Run(&proxy.DryRun{
		Method: t.method, Host: t.host, Target: t.target, Upstream: t.upstream, Body: t.body, Object: object,
		Old: t.old, IsStored: t.isStored, User: t.user,
		Decided: &j.decisions, IsKept: w.isDiff,
	})
}

// unjudgeable returns why a write cannot be judged.
func unjudgeable(err error) string {
	switch {
	case err == nil:
	case errors.Is(err, proxy.ErrOldUnknown):
		return "the stored object, on which the verdict depends, is not known"
	case errors.Is(err, proxy.ErrNotWrite):
		return notWrite
	case errors.Is(err, proxy.ErrNoRoute):
		return "no route of the configuration leads to its path"
	case errors.Is(err, proxy.ErrUndescribed):
		return "no policy file describes its path"
	}
	return ""
}

// parts returns the counts that the object belongs to.
func (w *worker) parts(o *proxy.Outcome, group string) (parts [3]*Counts) {
	name := o.Info.Resource
	if name == "" {
		name = unknown
	}
	if o.Info.Group != "" {
		name += "." + o.Info.Group
	}
	parts[0] = part(w.tally.Resources, name)
	parts[1] = part(w.tally.Namespaces, o.Info.Namespace)
	if w.scan.group.isSet() {
		if w.scan.group.byNamespace {
			group = o.Info.Namespace
		}
		parts[2] = part(w.tally.Groups, group)
	}
	return parts
}

// count counts an object by its findings.
func (w *worker) count(effects []effect, parts [3]*Counts) {
	var has [4]int64
	for i := range effects {
		switch effects[i].Effect {
		case Deny:
			has[0] = 1
		case Unjudged:
			has[1] = 1
		case Warn:
			has[2] = 1
		default:
			has[3] = 1
		}
	}
	w.tally.Denied += has[0]
	w.tally.Unjudged += has[1]
	w.tally.Warned += has[2]
	w.tally.Audited += has[3]
	for _, p := range parts {
		if p != nil {
			p.Objects++
			p.Denied += has[0]
			p.Unjudged += has[1]
			p.Warned += has[2]
			p.Audited += has[3]
			p.Passed += w.sides[0].decisions.passed
		}
	}
}

// read reads the result from an outcome.
func (v *verdict) read(o *proxy.Outcome) {
	clear(v.effects)
	v.effects, v.isKnown = v.effects[:0], false
	var refusal *status.Error
	denials := o.Report.Denials()
	switch {
	case o.Err == nil:
	case len(denials) > 0:
		for i := range denials {
			d := &denials[i]
			e := effect{Effect: Deny, policy: d.Policy, binding: d.Binding, field: d.Cause.Field,
				message: d.Cause.Message}
			if d.Failed {
				e.Effect = Unjudged
			}
			v.effects = append(v.effects, e)
		}
	case errors.As(o.Err, &refusal):
		v.refused(refusal)
	default:
		v.effects = append(v.effects, effect{Effect: Unjudged, message: o.Err.Error()})
	}
	for _, a := range o.Report.AuditedFailures() {
		v.effects = append(v.effects, effect{Effect: Audit, policy: a.Policy, binding: a.Binding, message: a.Message})
	}
	for _, f := range o.Report.IgnoredFailures() {
		v.effects = append(v.effects, effect{Effect: Ignored, policy: f.Policy, message: f.Err.Error()})
	}
	for _, text := range o.Warnings {
		v.effects = append(v.effects, effect{Effect: Warn, message: strings.Clone(text)})
	}
}

// refused reads a refusal that is no policy's: by the schema, by the conventions, or of an object that cannot be read.
func (v *verdict) refused(e *status.Error) {
	kind := Deny
	if e.ErrStatus.Code >= http.StatusInternalServerError || e.ErrStatus.Code == http.StatusTooManyRequests {
		kind = Unjudged
	}
	if e.ErrStatus.Details != nil && len(e.ErrStatus.Details.Causes) > 0 {
		for _, c := range e.ErrStatus.Details.Causes {
			v.effects = append(v.effects, effect{Effect: kind, field: c.Field, message: c.Message})
		}
		return
	}
	v.effects = append(v.effects, effect{Effect: kind, message: e.ErrStatus.Message})
}

// keep keeps the object as the policies left it.
func (v *verdict) keep(o *proxy.Outcome) {
	if v.isKnown = len(o.Object) > 0; v.isKnown {
		v.object = append(v.object[:0], o.Object...)
	}
}

// compare finds how the verdicts of the two sets differ.
func (w *worker) compare(about *Finding) {
	now, before := &w.verdicts[0], &w.verdicts[1]
	changes := [6]bool{4: now.refuses() && !before.refuses(), 5: !now.refuses() && before.refuses()}
	for i := range now.effects {
		e := &now.effects[i]
		if had := before.find(e); had == nil {
			changes[0] = true
			w.found(Added, e, about)
		} else if !before.says(e) {
			changes[2] = true
			one := *e
			one.fullOld = had.message
			w.found(Reworded, &one, about)
		}
	}
	for i := range before.effects {
		if e := &before.effects[i]; now.find(e) == nil {
			changes[1] = true
			w.found(Removed, e, about)
		}
	}
	if now.isKnown && before.isKnown && !bytes.Equal(now.object, before.object) {
		changes[3] = true
		w.found(Edited, &effect{Effect: Change, message: patchOf(before.object, now.object)}, about)
	}
	for i, name := range [...]string{Added, Removed, Reworded, Edited, Refused, Accepted} {
		if changes[i] {
			w.tally.Changes[name]++
		}
	}
}

// refuses reports whether the object would be refused.
func (v *verdict) refuses() bool {
	return slices.ContainsFunc(v.effects, func(e effect) bool { return e.Effect == Deny || e.Effect == Unjudged })
}

// find returns what the verdict has of the same policy, binding and effect; nil for nothing.
func (v *verdict) find(e *effect) *effect {
	i := slices.IndexFunc(v.effects, func(o effect) bool {
		return o.Effect == e.Effect && o.policy == e.policy && o.binding == e.binding &&
			(e.policy != "" || o.field == e.field && (e.Effect != Warn || o.message == e.message))
	})
	if i < 0 {
		return nil
	}
	return &v.effects[i]
}

// says reports whether the verdict has the very same effect.
func (v *verdict) says(e *effect) bool {
	return slices.ContainsFunc(v.effects, func(o effect) bool {
		return o.Effect == e.Effect && o.policy == e.policy && o.binding == e.binding && o.field == e.field &&
			o.message == e.message
	})
}

// patchOf returns the JSON patch that turns one object into the other.
func patchOf(from, to []byte) string {
	a, err := document.Parse(from, document.Limits{})
	if err != nil {
		return "the object differs"
	}
	defer a.Release()
	b, err := document.Parse(to, document.Limits{})
	if err != nil {
		return "the object differs"
	}
	defer b.Release()
	return "[" + string(document.AppendDifference(nil, a.Root(), b.Root(), nil)) + "]"
}

// about returns a finding that names the object.
func (w *worker) about(o *proxy.Outcome, i *item) Finding {
	f := Finding{
		Resource: strings.Clone(o.Info.Resource), Group: strings.Clone(o.Info.Group),
		Version:   strings.Clone(o.Info.Version),
		Namespace: strings.Clone(o.Info.Namespace), Name: strings.Clone(o.Info.Name), Source: i.place, Line: i.line,
	}
	if o.Resource != nil {
		f.Kind = o.Resource.Names.Kind
	}
	if f.Kind == "" || f.Name == "" {
		if d, err := document.Parse(w.trial.body, document.Limits{}); err == nil {
			metadata, _ := d.Root().Get("metadata")
			if f.Kind == "" {
				f.Kind = strings.Clone(textIn(d.Root(), "kind"))
			}
			if f.Name == "" {
				f.Name = strings.Clone(textIn(metadata, "name"))
			}
			f.UID = strings.Clone(textIn(metadata, "uid"))
			d.Release()
		}
	}
	return f
}

// found adds a finding.
func (w *worker) found(change string, e *effect, about *Finding) {
	w.tally.Findings++
	if len(w.batch.findings) >= w.scan.options.List {
		return
	}
	f := *about
	f.Change, f.Effect, f.Policy, f.Binding = change, e.Effect, e.policy, e.binding
	f.Field, f.Message, f.Old = clip(e.field), clip(e.message), clip(e.fullOld)
	w.batch.findings = append(w.batch.findings, f)
}

// maxText is how much of a text a finding has, in bytes.
const maxText = 2 << 10

// clip shortens a text, and copies it out of the object that it may be a part of.
func clip(s string) string {
	return strings.ToValidUTF8(strings.Clone(quote.Clip(s, maxText)), "�")
}
