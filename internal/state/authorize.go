package state

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// An Authorizer asks a Kubernetes API server whether a user may do something, by
// SubjectAccessReviews. It is for one request, whose goroutine alone may use it,
// and asks each question once. Before any other backend it denies everything.
type Authorizer struct {
	// Backend is asked; nil is none.
	Backend Backend
	// Deadline is that of the request; the zero time is none.
	Deadline time.Time

	known map[string]decision
}

type decision struct {
	verdict authorizer.Decision
	reason  string
	err     error
}

const (
	reviewTarget = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	// reviewTimeout bounds one question, maxReview the size of its answer in bytes.
	reviewTimeout = 5 * time.Second
	maxReview     = 1 << 20

	notAsked = "the backend is no Kubernetes API server, which alone knows what users may do"
)

var errBothWays = errors.New("the backend both allowed and denied it")

// Authorize implements authorizer.UnconditionalAuthorizer. The context is not that
// of the request, and is not used.
func (a *Authorizer) Authorize(_ context.Context, about authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.Backend == nil || !a.Backend.Kubernetes() {
		return authorizer.DecisionDeny, notAsked, nil
	}
	review := reviewOf(about)
	question, err := json.Marshal(review)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	d, asked := a.known[string(question)]
	if !asked {
		d = a.ask(question)
		if a.known == nil {
			a.known = map[string]decision{}
		}
		a.known[string(question)] = d
	}
	return d.verdict, d.reason, d.err
}

func (a *Authorizer) ask(question []byte) decision {
	until := time.Now().Add(reviewTimeout)
	if !a.Deadline.IsZero() && a.Deadline.Before(until) {
		until = a.Deadline
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	answer, err := a.Backend.Send(ctx, Request{Method: http.MethodPost, Target: reviewTarget, Body: question, Limit: maxReview})
	if err != nil {
		return decision{authorizer.DecisionNoOpinion, "", err}
	}
	if answer.Code != http.StatusOK && answer.Code != http.StatusCreated {
		return decision{authorizer.DecisionNoOpinion, "", errAnswer(answer.Code)}
	}
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(answer.Body, &review); err != nil {
		return decision{authorizer.DecisionNoOpinion, "", errNotJSON}
	}
	switch s := review.Status; {
	case s.Denied && s.Allowed:
		return decision{authorizer.DecisionDeny, s.Reason, errBothWays}
	case s.Denied:
		return decision{authorizer.DecisionDeny, s.Reason, nil}
	case s.Allowed:
		return decision{authorizer.DecisionAllow, s.Reason, nil}
	default:
		return decision{authorizer.DecisionNoOpinion, s.Reason, nil}
	}
}

// reviewOf is the question as kube-apiserver's own webhook for authorization puts it.
func reviewOf(about authorizer.Attributes) *authorizationv1.SubjectAccessReview {
	r := &authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}}
	setUser(&r.Spec, about.GetUser())
	if !about.IsResourceRequest() {
		r.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: about.GetPath(), Verb: about.GetVerb()}
		return r
	}
	r.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: about.GetNamespace(), Verb: about.GetVerb(), Group: about.GetAPIGroup(), Version: about.GetAPIVersion(),
		Resource: about.GetResource(), Subresource: about.GetSubresource(), Name: about.GetName(),
	}
	if fields := fieldRequirements(about); len(fields) > 0 {
		r.Spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: fields}
	}
	if labels := labelRequirements(about); len(labels) > 0 {
		r.Spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: labels}
	}
	return r
}

func setUser(s *authorizationv1.SubjectAccessReviewSpec, u user.Info) {
	if u == nil {
		return
	}
	s.User, s.UID, s.Groups = u.GetName(), u.GetUID(), u.GetGroups()
	for name, values := range u.GetExtra() {
		if s.Extra == nil {
			s.Extra = map[string]authorizationv1.ExtraValue{}
		}
		s.Extra[name] = values
	}
}

// fieldRequirements are those of a field selector. Requirements only narrow: one that cannot be told is left out, which
// asks for more than is needed.
func fieldRequirements(about authorizer.Attributes) []metav1.FieldSelectorRequirement {
	var all []metav1.FieldSelectorRequirement
	selected, _ := about.GetFieldSelector()
	for _, r := range selected {
		one := metav1.FieldSelectorRequirement{Key: r.Field, Values: []string{r.Value}}
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			one.Operator = metav1.FieldSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			one.Operator = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		all = append(all, one)
	}
	return all
}

// labelRequirements are those of a label selector.
func labelRequirements(about authorizer.Attributes) []metav1.LabelSelectorRequirement {
	var all []metav1.LabelSelectorRequirement
	selected, _ := about.GetLabelSelector()
	for _, r := range selected {
		one := metav1.LabelSelectorRequirement{Key: r.Key(), Values: r.ValuesUnsorted()}
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			one.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			one.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			one.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			one.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			continue
		}
		all = append(all, one)
	}
	return all
}
