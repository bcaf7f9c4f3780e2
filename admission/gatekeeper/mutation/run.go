package mutation

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// Mutate implements admission.Mutator. An error is the answer, as it would come from Gatekeeper's
// webhook.
func (s *MutatorSet) Mutate(ctx context.Context, a *admission.Attributes, run *admission.Run,
	r *admission.Report) error {
	var room [16]*Mutator
	selected := room[:0]
	var tried []*Mutator
	for m := range s.selection.For(a.Info, a.Operation) {
		switch standing := m.stand(ctx, a, r); {
		case standing.IsDryRun:
			tried = append(tried, m)
		case !standing.IsExcepted():
			selected = append(selected, m)
		}
	}
	run.Invoked = true
	changed, err := s.converge(ctx, a, selected)
	if err != nil {
		return status.DeniedByWebhook(Webhook, http.StatusInternalServerError, err.Error())
	}
	for _, m := range tried {
		s.try(ctx, m, a, r)
	}
	if !changed {
		return nil
	}
	run.Patched = true
	a.Changed()
	if a.Schema == nil {
		return nil
	}
	return a.Schema.SetDefaults()
}

// stand returns how a mutator stands to the request. It is recorded if the mutator matches the
// object.
func (m *Mutator) stand(ctx context.Context, a *admission.Attributes, r *admission.Report) (s admission.Standing) {
	if m.terms == nil {
		return s
	}
	defer a.Bind() // conditions of exceptions have variables of their own
	if matches, err := m.matches(ctx, a); matches || err != nil {
		return r.Stand(ctx, a, m.Name(), m.terms)
	}
	return m.terms.Stand(ctx, a)
}

// try lets a mutator change a copy of the object as the others made it.
func (s *MutatorSet) try(ctx context.Context, m *Mutator, a *admission.Attributes, r *admission.Report) {
	object := a.Object
	defer func() { a.Object = object }()
	a.Object = object.Clone()
	defer a.Object.Release()
	changed, err := s.converge(ctx, a, []*Mutator{m})
	switch {
	case err != nil:
		r.Try(m.terms, status.Denial{
			Policy: m.Name(), Webhook: Webhook, Failed: true, Cause: metav1.StatusCause{Message: err.Error()},
		})
	case changed:
		r.TryChange(m.terms, m.Name())
	}
}

// converge lets the mutators change the object until a pass of all of them makes no difference.
func (s *MutatorSet) converge(ctx context.Context, a *admission.Attributes, selected []*Mutator) (changed bool,
	err error) {
	w := walk{attributes: a, document: a.Object}
	limits := limitsOf(a)
	for pass := 0; pass <= s.count; pass++ {
		var before *document.Document
		w.before = nil
		if pass > 0 {
			// Mutators may undo in a pass what others did in it.
			w.before = func() { before = a.Object.Clone() }
		}
		differs, err := w.pass(ctx, selected, limits.Bytes)
		if before != nil {
			differs = differs && !document.EqualNodes(before.Root(), a.Object.Root())
			before.Release()
		}
		if err != nil {
			return changed, err
		}
		if !differs {
			return changed, nil
		}
		changed = true
	}
	return changed, fmt.Errorf("mutation not converging: the mutators never stop to change %s", w.subject())
}

// limitsOf bound what mutators make of the object.
func limitsOf(a *admission.Attributes) (l document.Limits) {
	if a.Schema != nil {
		l = a.Schema.PatchLimits()
	}
	if l.Bytes == 0 {
		l.Bytes = document.DefaultBytes
	}
	return l
}

// pass lets each mutator that matches change the object once.
func (w *walk) pass(ctx context.Context, selected []*Mutator, most int) (changed bool, err error) {
	for _, m := range selected {
		matches, err := m.matches(ctx, w.attributes)
		if err != nil {
			return changed, fmt.Errorf("matching for mutator %s failed for %s: %w", m, w.subject(), err)
		}
		if !matches {
			continue
		}
		w.mutator = m
		one, err := w.mutate(w.document.Root(), 0)
		if err != nil {
			return changed, fmt.Errorf("mutator %s failed for %s: %w", m, w.subject(), err)
		}
		changed = changed || one
		if w.document.Extent() > most {
			return changed, fmt.Errorf("mutator %s makes %s longer than %d bytes", m, w.subject(), most)
		}
	}
	return changed, nil
}

// subject names the object.
func (w *walk) subject() string {
	kind := w.attributes.KindOf(w.document).Kind
	name := w.attributes.Name()
	if name == "" {
		name = w.metadata("generateName")
	}
	if namespace := w.namespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s '%s'", kind, name)
}
