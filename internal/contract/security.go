package contract

import (
	"bytes"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Authenticates reports whether a request has what the document wants of one that says who it is from. If not, the
// challenge is the value of WWW-Authenticate, empty if no scheme has one.
func (o *Operation) Authenticates(i *resource.Info, head *message.Head) (ok bool, challenge string) {
	if len(o.Security) == 0 {
		return true, ""
	}
	for _, all := range o.Security {
		if !slices.ContainsFunc(all, func(c Credential) bool { return !c.isIn(i, head) }) {
			return true, ""
		}
	}
	var schemes []string
	for _, all := range o.Security {
		for _, c := range all {
			if c.Scheme != "" && !slices.Contains(schemes, c.Scheme) {
				schemes = append(schemes, c.Scheme)
			}
		}
	}
	for n := range schemes {
		schemes[n] += ` realm="api"`
	}
	return false, strings.Join(schemes, ", ")
}

// isIn reports whether a request has the credential.
func (c *Credential) isIn(i *resource.Info, head *message.Head) bool {
	switch {
	case c.Scheme == "" && c.In == InQuery:
		value, _ := i.Param(c.Name)
		return value != ""
	case c.Scheme == "" && c.In == InHeader:
		value, _ := head.Lookup(c.Name)
		return len(bytes.TrimSpace(value)) > 0
	}
	lines := head.Headers()
	for k := range lines {
		l := &lines[k]
		switch {
		case c.Scheme != "" && l.Field == message.FieldAuthorization: // though the gateway has taken it for itself
			scheme, rest, _ := strings.Cut(str(bytes.TrimSpace(l.Value)), " ")
			if strings.EqualFold(scheme, c.Scheme) && strings.TrimSpace(rest) != "" {
				return true
			}
		case c.Scheme == "" && l.Field == message.FieldCookie && !l.Dropped:
			for one := range strings.SplitSeq(str(l.Value), ";") {
				if name, value, _ := strings.Cut(strings.TrimSpace(one), "="); name == c.Name && value != "" {
					return true
				}
			}
		}
	}
	return false
}
