package resource

import (
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/status"
)

// scanQuery reads the query once into the Options. Where they are read, a parameter
// that Kubernetes knows occurs at most once and is spelled plainly; elsewhere
// only what hides a method is refused.
func (i *Info) scanQuery(readsOptions bool) error {
	readsOptions = readsOptions && i.IsResource && !i.proxied()
	var seen uint32
	for rest := i.Query; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if err := checkQuery(pair, i.IsResource && !i.proxied() || i.Documented != nil); err != nil {
			return err
		}
		key, value, _ := strings.Cut(pair, "=")
		if key != "" && (key[0] == '_' || key[0] == '%') && isMethodOverride(key) {
			return status.BadRequest("the query parameter '_method' may not be used: the request's own method counts")
		}
		if !readsOptions {
			continue // the parameters are the API's own, or another server's
		}
		p := parameterOf(key)
		if p == unknownParameter {
			if strings.IndexByte(key, '%') >= 0 && parameterOf(decode(key)) != unknownParameter {
				return status.BadRequest("the query parameter '%s' must be written without percent-encoding",
					decode(key))
			}
			continue
		}
		if seen&(1<<p) != 0 {
			return status.BadRequest("the query parameter '%s' may not be given more than once", key)
		}
		seen |= 1 << p
		if err := i.option(p, value); err != nil {
			return err
		}
	}
	return nil
}

// checkQuery refuses characters that a query may not have. Where files describe the query it
// also refuses what servers read in different ways: the semicolon, which
// separates parameters for some of them, and a '%' without two hexadecimal
// digits. Elsewhere the query is another server's to read.
func checkQuery(s string, isResource bool) error {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case !queryChars[c], c == ';' && isResource:
			return refusedChar(c)
		case c == '%' && isResource:
			if _, ok := unhex(s, i); !ok {
				return status.BadRequest("the query must not contain '%%' without two hexadecimal digits")
			}
		}
	}
	return nil
}

// isMethodOverride reports whether a key reads "_method" in any case and
// encoding.
func isMethodOverride(key string) bool {
	if len(key) > 3*len("_method") {
		return false
	}
	return strings.EqualFold(decode(key), "_method")
}

// parameter is one of the query parameters that Kubernetes knows.
type parameter uint8

const (
	unknownParameter parameter = iota
	fieldValidationParameter
	dryRunParameter
	watchParameter
	timeoutParameter
	// plainParameter and those after it must only not occur twice.
	plainParameter
)

// IsOption reports whether a query parameter is one that Kubernetes knows on every resource.
func IsOption(name string) bool { return parameterOf(name) != unknownParameter }

func parameterOf(key string) parameter {
	switch key {
	case "fieldValidation":
		return fieldValidationParameter
	case "dryRun":
		return dryRunParameter
	case "watch":
		return watchParameter
	case "timeout":
		return timeoutParameter
	case "fieldSelector":
		return plainParameter
	case "labelSelector":
		return plainParameter + 1
	case "limit":
		return plainParameter + 2
	case "continue":
		return plainParameter + 3
	case "resourceVersion":
		return plainParameter + 4
	case "resourceVersionMatch":
		return plainParameter + 5
	case "timeoutSeconds":
		return plainParameter + 6
	case "pretty":
		return plainParameter + 7
	case "force":
		return plainParameter + 8
	case "fieldManager":
		return plainParameter + 9
	case "propagationPolicy":
		return plainParameter + 10
	case "gracePeriodSeconds":
		return plainParameter + 11
	case "orphanDependents":
		return plainParameter + 12
	case "sendInitialEvents":
		return plainParameter + 13
	case "allowWatchBookmarks":
		return plainParameter + 14
	case "shardSelector":
		return plainParameter + 15
	case "ignoreStoreReadErrorWithClusterBreakingPotential":
		return plainParameter + 16
	}
	return unknownParameter
}

// option takes over the value of a parameter that the gateway acts on. If the parameter has no
// meaning for the verb, Kubernetes ignores it, and so do we.
func (i *Info) option(p parameter, value string) error {
	if i.Connect {
		if p == dryRunParameter {
			return status.BadRequest("dryRun is not supported") // in the words of kube-apiserver
		}
		return nil
	}
	switch p {
	case fieldValidationParameter:
		if !i.HasBody() {
			return nil
		}
		switch value {
		case "":
		case "Ignore":
			i.Options.FieldValidation = FieldValidationIgnore
		case "Warn":
			i.Options.FieldValidation = FieldValidationWarn
		case "Strict":
			i.Options.FieldValidation = FieldValidationStrict
		default:
			return i.invalidOption(status.Enum("fieldValidation", short(value),
				[]string{"", "Ignore", "Strict", "Warn"}))
		}
	case dryRunParameter:
		if !i.IsWrite() {
			return nil
		}
		if value != "All" {
			return i.invalidOption(status.Enum("dryRun", []string{short(value)}, []string{"All"}))
		}
		i.Options.DryRun = true
	case watchParameter:
		switch value {
		case "true", "True", "TRUE", "1":
			i.Options.Watch = true
		case "false", "False", "FALSE", "0":
		default:
			// Kubernetes takes an empty value for true, other servers for false.
			return status.BadRequest("the query parameter 'watch' must be 'true' or 'false'")
		}
		if i.Options.Watch && i.Verb == VerbWatch.Documented() {
			i.Verb = VerbWatch
		}
	case timeoutParameter:
		return i.timeout(value)
	}
	return nil
}

// timeout reads a deadline as Kubernetes does. On an ordinary API another form
// is the API's own affair.
func (i *Info) timeout(value string) error {
	if value == "" {
		return nil
	}
	if strings.IndexByte(value, '%') >= 0 {
		if decoded, err := url.QueryUnescape(value); err == nil {
			value = decoded
		}
	}
	d, err := time.ParseDuration(value)
	switch {
	case err == nil:
		i.Options.Timeout = max(d, 0) // a negative one counts as not given
	case i.APIPrefix != "":
		return status.BadRequest("the query parameter 'timeout' must be a duration such as '30s', not '%s'",
			short(value))
	}
	return nil
}

// invalidOption is Kubernetes' refusal of an option: 422 about the verb's
// options object.
func (i *Info) invalidOption(err *field.Error) error {
	return status.Invalid(schema.GroupKind{Group: "meta.k8s.io", Kind: i.Verb.OptionsKind()}, "", field.ErrorList{err},
		0)
}
