package openapi

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
)

// security returns the sets of credentials. An operation needs one of them; none if it needs nothing.
func (d *Document) security(operation document.Node) []contract.Credentials {
	list, found := operation.Get("security")
	if !found {
		list, _ = d.root.Get("security")
	}
	var all []contract.Credentials
	free := false
	members(list, func(requirement document.Node) {
		needed := contract.Credentials{}
		members(requirement, func(m document.Node) {
			if c, ok := d.credential(m); ok {
				needed = append(needed, c)
			}
		})
		free = free || len(needed) == 0
		all = append(all, needed)
	})
	if free {
		return nil
	}
	return all
}

// credential finds what a scheme asks of requests; ok is false if that is not enforced.
func (d *Document) credential(m document.Node) (c contract.Credential, ok bool) {
	scheme, err := d.resolve("#/components/securitySchemes/" + escaped(m.Key()))
	if err != nil {
		d.report.warn(m, "is not enforced: the document has no such security scheme")
		return c, false
	}
	if scheme = d.follow(scheme); !scheme.Valid() {
		return c, false
	}
	if m.Len() > 0 {
		d.report.note(m, "is not enforced: the API itself knows which scopes its credentials have")
	}
	switch text(scheme, "type") {
	case "http":
		c.Scheme = canonicalScheme(text(scheme, "scheme"))
		if c.Scheme != "" {
			return c, true
		}
	case "oauth2", "openIdConnect":
		c.Scheme = "Bearer"
		return c, true
	case "apiKey":
		c.Name = strings.Clone(text(scheme, "name"))
		if c.In, ok = contract.PlaceNamed(text(scheme, "in")); ok && c.In != contract.InPath && c.Name != "" {
			return c, true
		}
	}
	d.report.gap(scheme, "is not enforced: the gateway looks for an apiKey, and for credentials of the header Authorization")
	return c, false
}

// escaped is a name as a step of a pointer.
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(name)
}

// canonicalScheme is a scheme of Authorization as the specifications spell it.
func canonicalScheme(name string) string {
	switch lower := strings.ToLower(name); lower {
	case "basic", "bearer", "digest", "negotiate":
		return strings.ToUpper(lower[:1]) + lower[1:]
	}
	return strings.Clone(name)
}
