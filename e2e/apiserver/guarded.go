package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// guard lets users do what they are allowed to, through kube-apiserver's own filters. A bearer token is the name of its
// user; without one it is system:anonymous. It answers the reviews that kube-apiserver serves besides.
type guard struct {
	mu      sync.Mutex
	allowed map[string]bool // "USER VERB RESOURCE[/SUBRESOURCE]"
	reasons map[string]string
	reviews []string
}

// Allow lets a user do something ("create widgets", "update widgets/scale"); with the verb "*" everything.
func (s *Server) Allow(user, what string) {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.guard.allowed[user+" "+what] = true
}

// Reason is the message to a user who may not do something.
func (s *Server) Reason(user, why string) {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.guard.reasons[user] = why
}

// Reviews returns the questions about users' access since the last call, and forgets them.
func (s *Server) Reviews() []string {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	defer func() { s.guard.reviews = nil }()
	return s.guard.reviews
}

// chain puts the guard in front of a server's own chain.
func (g *guard) chain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	handler = g.withReviews(handler)
	handler = filters.WithAuthorization(handler, g, apiserver.Codecs)
	handler = filters.WithAuthentication(handler, authenticator.RequestFunc(authenticate),
		filters.Unauthorized(apiserver.Codecs), nil, nil)
	handler = filters.WithRequestInfo(handler, genericapiserver.NewRequestInfoResolver(c))
	return filters.WithCacheControl(handler)
}

func authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	u := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		u = &user.DefaultInfo{Name: token, Groups: []string{user.AllAuthenticated}}
	}
	return &authenticator.Response{User: u}, u.Name != "nobody", nil
}

// Authorize implements authorizer.Authorizer.
func (g *guard) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	what := a.GetResource()
	if a.GetSubresource() != "" {
		what += "/" + a.GetSubresource()
	}
	name := a.GetUser().GetName()
	self := strings.HasPrefix(what, "selfsubject") && name != user.Anonymous
	// As kube-apiserver's ClusterRole system:discovery lets every authenticated user.
	discovers := !a.IsResourceRequest() && name != user.Anonymous && (a.GetPath() == "/api" || a.GetPath() == "/apis" ||
		strings.HasPrefix(a.GetPath(), "/api/") || strings.HasPrefix(a.GetPath(), "/apis/"))
	g.mu.Lock()
	defer g.mu.Unlock()
	if self || discovers || g.allowed[name+" *"] || g.allowed[name+" "+a.GetVerb()+" "+what] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, g.reasons[name], nil
}

// withReviews answers reviews as kube-apiserver does, by the same decisions.
func (g *guard) withReviews(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asker, _ := request.UserFrom(r.Context())
		switch strings.TrimPrefix(r.URL.Path, "/apis/authorization.k8s.io/v1/") {
		case "subjectaccessreviews":
			var review authorizationv1.SubjectAccessReview
			if json.NewDecoder(r.Body).Decode(&review) == nil {
				review.Status = g.decide(&user.DefaultInfo{Name: review.Spec.User, Groups: review.Spec.Groups},
					review.Spec.ResourceAttributes)
				writeCreated(w, review)
			}
		case "selfsubjectaccessreviews":
			var review authorizationv1.SelfSubjectAccessReview
			if json.NewDecoder(r.Body).Decode(&review) == nil {
				review.Status = g.decide(asker, review.Spec.ResourceAttributes)
				writeCreated(w, review)
			}
		case "/apis/authentication.k8s.io/v1/selfsubjectreviews":
			review := authenticationv1.SelfSubjectReview{}
			review.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
			review.Status.UserInfo.Username = asker.GetName()
			writeCreated(w, review)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

func (g *guard) decide(who user.Info, a *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	decision, reason, _ := g.Authorize(context.Background(), authorizer.AttributesRecord{
		User: who, ResourceRequest: true, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.Group,
		APIVersion: a.Version,
		Resource:   a.Resource, Subresource: a.Subresource, Name: a.Name,
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reviews = append(g.reviews, who.GetName()+" "+a.Verb+" "+a.Resource)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Reason: reason}
}

func writeCreated(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(v) // the client that has gone needs no answer
}
