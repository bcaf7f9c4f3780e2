package cel

import (
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// limitedType is the type of the variable request of rate limits. It uses the names of an
// AdmissionRequest for what that shows too.
var limitedType = sync.OnceValue(func() *apiservercel.DeclType {
	object := func(name string, fields map[string]*apiservercel.DeclType) *apiservercel.DeclType {
		declared := make(map[string]*apiservercel.DeclField, len(fields))
		for name, t := range fields {
			declared[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
		}
		return apiservercel.NewObjectType(name, declared)
	}
	text := apiservercel.StringType
	texts := apiservercel.NewListType(text, -1)
	return object("gateway.Request", map[string]*apiservercel.DeclType{
		"verb": text,
		"path": text,
		"resource": object("gateway.Resource", map[string]*apiservercel.DeclType{
			"group": text, "version": text, "resource": text,
		}),
		"subResource":   text,
		"namespace":     text,
		"name":          text,
		"clientAddress": text,
		"client":        object("gateway.Client", map[string]*apiservercel.DeclType{"address": text}),
		"headers":       apiservercel.NewMapType(text, text, -1),
		"query":         apiservercel.NewMapType(text, text, -1),
		"bodyBytes":     apiservercel.IntType,
		"userInfo": object("gateway.UserInfo", map[string]*apiservercel.DeclType{
			"username": text, "uid": text, "groups": texts, "extra": apiservercel.NewMapType(text, texts, -1),
		}),
	})
})

var limitedEnv = sync.OnceValues(func() (*env, error) {
	return newEnv([]*apiservercel.DeclType{limitedType(), httpType()},
		celgo.Variable(plan.NameRequest, limitedType().CelType()), celgo.Variable(plan.NameHTTP, httpType().CelType()))
})

// A RequestCompiler compiles expressions about requests of any verb, before
// their bodies are read: the conditions, keys and costs of rate limits. They see
// http, as all policies do, and request, with
//
//	verb           get, list, watch, create, update, patch, delete or deletecollection
//	path           the raw path
//	resource       {group, version, resource}
//	subResource, namespace, name
//	client         {address}: the client's IP address, which is clientAddress too
//	headers        by lower-case name; several of a name are joined by a comma and a blank
//	query          the parameters of the query, decoded, by name; several of a name are joined likewise
//	bodyBytes      how long the body is, or may become where the client does not announce it
//	userInfo       {username, uid, groups, extra}
//
// What a request does not have is empty. The zero value is ready for use.
type RequestCompiler struct{}

// Condition compiles an expression that reports whether a limit concerns a request.
func (RequestCompiler) Condition(expression string) (*Program, error) {
	return compileLimited(expression, celgo.BoolType)
}

// Key compiles an expression whose value, a string, groups requests: each value is counted
// separately.
func (RequestCompiler) Key(expression string) (*Program, error) {
	return compileLimited(expression, celgo.StringType)
}

// Cost compiles an expression whose value, an integer, says how many requests a
// request counts as.
func (RequestCompiler) Cost(expression string) (*Program, error) {
	return compileLimited(expression, celgo.IntType)
}

func compileLimited(expression string, returns *celgo.Type) (*Program, error) {
	e, err := limitedEnv()
	if err != nil {
		return nil, fmt.Errorf("environment misconfigured: %w", err)
	}
	p, err := e.compile(expression, nil, returns)
	if err != nil {
		return nil, err
	}
	p.limited = true
	return p, nil
}
