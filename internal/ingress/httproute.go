package ingress

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/routing"
)

func (c *translation) httpRoute(o *gatewayv1.HTTPRoute) {
	r, parents := c.begin(routeObject{kindHTTPRoute, o, o.Spec.ParentRefs, o.Spec.Hostnames, &o.Status.RouteStatus})
	if r == nil {
		return
	}
	specs := o.Spec.Rules
	if specs == nil {
		specs = []gatewayv1.HTTPRouteRule{{}} // as the API's default
	}
	kind := ruleKind[gatewayv1.HTTPRouteMatch, gatewayv1.HTTPRouteFilter, gatewayv1.HTTPBackendRef]{
		match: httpMatch, filters: r.httpFilters,
		backend: func(b *gatewayv1.HTTPBackendRef) (*gatewayv1.BackendRef, []gatewayv1.HTTPRouteFilter) {
			return &b.BackendRef, b.Filters
		},
	}
	rules := make([]madeRule, 0, len(specs))
	for i := range specs {
		spec := &specs[i]
		rule, ok := kind.read(r, ruleSpec[gatewayv1.HTTPRouteMatch, gatewayv1.HTTPRouteFilter,
			gatewayv1.HTTPBackendRef]{
			spec.Name, spec.Matches, spec.Filters, spec.BackendRefs, spec.SessionPersistence,
		}, i)
		if !ok {
			continue
		}
		if t := spec.Timeouts; t != nil {
			rule.Timeout = r.timeout(t.Request, rulePath(i)+".timeouts.request")
			rule.AttemptTimeout = r.timeout(t.BackendRequest, rulePath(i)+".timeouts.backendRequest")
		}
		rule.Retry = r.retry(spec.Retry, rulePath(i)+".retry")
		rules = append(rules, rule)
	}
	r.end(parents, rules)
}

// retry translates when a request is sent again; nil if it is not.
func (r *reading) retry(spec *gatewayv1.HTTPRouteRetry, path string) *routing.Retry {
	if spec == nil {
		return nil
	}
	again := &routing.Retry{Attempts: max(or(spec.Attempts, 1), 0), Backoff: r.backoff(spec.Backoff, path+".backoff")}
	for _, code := range spec.Codes {
		again.Codes = append(again.Codes, int(code))
	}
	return again
}

// httpMatch translates a match. A problem is at a field of it.
func httpMatch(spec *gatewayv1.HTTPRouteMatch) (m routing.Match, problem, at string) {
	m.Path.Value = "/"
	if p := spec.Path; p != nil {
		m.Path.Value = or(p.Value, "/")
		switch kind := or(p.Type, gatewayv1.PathMatchPathPrefix); kind {
		case gatewayv1.PathMatchPathPrefix:
			m.Path.Kind = routing.PathPrefix
		case gatewayv1.PathMatchExact:
			m.Path.Kind = routing.PathExact
		case gatewayv1.PathMatchRegularExpression:
			m.Path.Kind = routing.PathExpression
			if _, err := regexp.Compile(m.Path.Value); err != nil {
				return m, "must be a regular expression of RE2: " + err.Error(), ".path.value"
			}
		default:
			return m, fmt.Sprintf("the type '%s' is not supported", kind), ".path.type"
		}
		if m.Path.Kind != routing.PathExpression && !strings.HasPrefix(m.Path.Value, "/") {
			return m, fmt.Sprintf("'%s' must begin with '/'", m.Path.Value), ".path.value"
		}
	}
	for i := range spec.Headers {
		h := &spec.Headers[i]
		v, problem := valueMatch(string(h.Name), h.Value, string(or(h.Type, gatewayv1.HeaderMatchExact)))
		if problem != "" {
			return m, problem, fmt.Sprintf(".headers[%d]", i)
		}
		m.Headers = appendValue(m.Headers, v, true)
	}
	for i := range spec.QueryParams {
		q := &spec.QueryParams[i]
		v, problem := valueMatch(string(q.Name), q.Value, string(or(q.Type, gatewayv1.QueryParamMatchExact)))
		if problem != "" {
			return m, problem, fmt.Sprintf(".queryParams[%d]", i)
		}
		m.Query = appendValue(m.Query, v, false)
	}
	m.Method = string(or(spec.Method, ""))
	return m, "", ""
}

// valueMatch translates the match of a header or of a parameter.
func valueMatch(name, value, kind string) (v routing.ValueMatch, problem string) {
	v = routing.ValueMatch{Name: name, Value: value}
	switch kind {
	case string(gatewayv1.HeaderMatchExact):
	case string(gatewayv1.HeaderMatchRegularExpression):
		v.IsExpression = true
		if _, err := regexp.Compile(value); err != nil {
			return v, "must be a regular expression of RE2: " + err.Error()
		}
	default:
		return v, fmt.Sprintf("the type '%s' is not supported", kind)
	}
	return v, ""
}

// appendValue adds a match unless one of the name is there, of which the first counts.
func appendValue(all []routing.ValueMatch, v routing.ValueMatch, isHeader bool) []routing.ValueMatch {
	for i := range all {
		if all[i].Name == v.Name || isHeader && strings.EqualFold(all[i].Name, v.Name) {
			return all
		}
	}
	return append(all, v)
}

// backoff reads the time between two attempts.
func (r *reading) backoff(d *gatewayv1.Duration, path string) time.Duration {
	if b := r.timeout(d, path); b != routing.Unbounded {
		return b
	}
	return 0
}

// timeout reads a timeout of the API, of which 0 is none at all; 0 if nothing is said.
func (r *reading) timeout(d *gatewayv1.Duration, path string) time.Duration {
	if d == nil {
		return 0
	}
	took, err := time.ParseDuration(string(*d))
	if err != nil || took < 0 {
		r.unsupport(path, fmt.Sprintf("'%s' is no duration", *d))
		return 0
	}
	if took == 0 {
		return routing.Unbounded
	}
	return took
}

// httpFilters translates filters. One that cannot be carried out refuses the requests.
func (r *reading) httpFilters(specs []gatewayv1.HTTPRouteFilter, path string) []routing.Filter {
	var all []routing.Filter
	for i := range specs {
		f, at := &specs[i], fmt.Sprintf("%s[%d]", path, i)
		switch {
		case f.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			all = append(all, r.edits(f.RequestHeaderModifier, at,
				func(e *routing.HeaderEdits) routing.Filter { return routing.Filter{Request: e} }))
		case f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			all = append(all, r.edits(f.ResponseHeaderModifier, at,
				func(e *routing.HeaderEdits) routing.Filter { return routing.Filter{Answer: e} }))
		case f.Type == gatewayv1.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
			all = append(all, routing.Filter{Redirect: redirect(f.RequestRedirect)})
		case f.Type == gatewayv1.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
			all = append(all, routing.Filter{Rewrite: &routing.Rewrite{Host: string(or(f.URLRewrite.Hostname, "")),
				Path: pathEdit(f.URLRewrite.Path)}})
		case f.Type == gatewayv1.HTTPRouteFilterRequestMirror && f.RequestMirror != nil:
			all = r.mirror(all, f.RequestMirror, at, false)
		case f.Type == gatewayv1.HTTPRouteFilterCORS && f.CORS != nil:
			all = append(all, routing.Filter{CORS: corsOf(f.CORS)})
		default:
			all = append(all, r.unknownFilter(string(f.Type), f.ExtensionRef, at))
		}
	}
	return r.compatible(all, path)
}

// compatible refuses requests that would have to be both redirected and rewritten.
func (r *reading) compatible(all []routing.Filter, path string) []routing.Filter {
	var isRedirected, isRewritten bool
	for i := range all {
		isRedirected, isRewritten = isRedirected || all[i].Redirect != nil, isRewritten || all[i].Rewrite != nil
	}
	if !isRedirected || !isRewritten {
		return all
	}
	const message = "a request cannot be both redirected and rewritten"
	r.unsupported = first(r.unsupported, fault{string(gatewayv1.RouteReasonIncompatibleFilters), path + ": " + message})
	r.problem(path, message)
	return []routing.Filter{{Unknown: message}}
}

// unknownFilter refuses the requests of a rule whose filter the gateway does not have.
func (r *reading) unknownFilter(kind string, ref *gatewayv1.LocalObjectReference, path string) routing.Filter {
	message := fmt.Sprintf("the filter '%s' is not supported", kind)
	if ref != nil {
		message = fmt.Sprintf("the filter '%s' of the group '%s' is not supported", ref.Kind, ref.Group)
		r.unresolve(path, fault{string(gatewayv1.RouteReasonInvalidKind), message})
	} else {
		r.unsupport(path, message)
	}
	return routing.Filter{Unknown: message}
}

// mirror adds a filter that sends copies to a backend. Without the backend there are no copies, and requests go on.
func (r *reading) mirror(all []routing.Filter, spec *gatewayv1.HTTPRequestMirrorFilter, path string,
	isHTTP2 bool) []routing.Filter {
	t := r.target(&spec.BackendRef, path+".requestMirror.backendRef", isHTTP2)
	if t.fault != "" {
		return all
	}
	m := &routing.Mirror{Backend: r.backend(t, nil), Numerator: 1, Denominator: 1}
	switch {
	case spec.Percent != nil:
		m.Numerator, m.Denominator = min(max(*spec.Percent, 0), 100), 100
	case spec.Fraction != nil:
		m.Denominator = max(or(spec.Fraction.Denominator, 100), 1)
		m.Numerator = min(max(spec.Fraction.Numerator, 0), m.Denominator)
	}
	return append(all, routing.Filter{Mirror: m})
}

// edits translates edits of header lines, as a filter that filter makes. Those that are not allowed refuse the
// requests.
func (r *reading) edits(f *gatewayv1.HTTPHeaderFilter, path string,
	filter func(*routing.HeaderEdits) routing.Filter) routing.Filter {
	e := &routing.HeaderEdits{Remove: f.Remove}
	for _, h := range f.Set {
		e.Set = append(e.Set, routing.Header{Name: string(h.Name), Value: h.Value})
	}
	for _, h := range f.Add {
		e.Add = append(e.Add, routing.Header{Name: string(h.Name), Value: h.Value})
	}
	all := slices.Concat(e.Set, e.Add)
	for _, name := range e.Remove {
		all = append(all, routing.Header{Name: name})
	}
	for _, h := range all {
		if err := message.CheckEdit(h.Name, h.Value); err != nil {
			r.unsupport(path, err.Error())
			return routing.Filter{Unknown: err.Error()}
		}
	}
	return filter(e)
}

func redirect(f *gatewayv1.HTTPRequestRedirectFilter) *routing.Redirect {
	return &routing.Redirect{
		Scheme: or(f.Scheme, ""), Host: string(or(f.Hostname, "")), Path: pathEdit(f.Path), Port: or(f.Port, 0),
		Code: or(f.StatusCode, http.StatusFound),
	}
}

// pathEdit translates what is put in place of a path; nil if the path stays.
func pathEdit(p *gatewayv1.HTTPPathModifier) *routing.PathEdit {
	switch {
	case p == nil:
	case p.Type == gatewayv1.FullPathHTTPPathModifier && p.ReplaceFullPath != nil:
		return &routing.PathEdit{Value: *p.ReplaceFullPath}
	case p.Type == gatewayv1.PrefixMatchHTTPPathModifier && p.ReplacePrefixMatch != nil:
		return &routing.PathEdit{IsPrefix: true, Value: *p.ReplacePrefixMatch}
	}
	return nil
}

func corsOf(f *gatewayv1.HTTPCORSFilter) *routing.CORS {
	c := &routing.CORS{HasCredentials: or(f.AllowCredentials, false), MaxAge: time.Duration(f.MaxAge) * time.Second}
	if f.MaxAge == 0 {
		c.MaxAge = 5 * time.Second // the API's default
	}
	c.Origins = texts(f.AllowOrigins)
	c.Methods = texts(f.AllowMethods)
	c.Headers = texts(f.AllowHeaders)
	c.Exposed = texts(f.ExposeHeaders)
	return c
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = string(t)
	}
	return out
}
