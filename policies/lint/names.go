package lint

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-gateway/gateway/internal/document"
)

var (
	camelKind = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	plural    = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	keyName   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// names checks the names of a definition (LINT-1, LINT-10).
func (l *linter) names() {
	root := l.definition.from.Document().Root()
	if l.definition.isCRD {
		l.kind(in(root, "spec", "names", "kind"))
		if n := in(root, "spec", "names", "plural"); n.Valid() && !plural.MatchString(textOf(n)) {
			l.found(resourceNames, n.Path(), "must be lower case and plural, not '%s'", textOf(n))
		} else if n.Valid() && textOf(n) == strings.ToLower(textOf(in(root, "spec", "names", "kind"))) &&
			!strings.HasSuffix(textOf(n), "s") {
			l.found(resourceNames, n.Path(), "must be plural, not '%s'", textOf(n))
		}
		if n := in(root, "spec", "group"); n.Valid() && len(validation.IsDNS1123Subdomain(textOf(n))) > 0 {
			l.found(groupNames, n.Path(), "must be a DNS subdomain, not '%s'", textOf(n))
		}
		for v := in(root, "spec", "versions").First(); v.Valid(); v = v.Next() {
			l.version(v)
		}
	}
	for _, member := range []string{"labels", "annotations"} {
		for m := in(root, "metadata", member).First(); m.Valid(); m = m.Next() {
			l.key(m)
		}
	}
}

func (l *linter) kind(n document.Node) {
	switch kind := textOf(n); {
	case !n.Valid():
	case !camelKind.MatchString(kind):
		l.found(kindNames, n.Path(), "must be CamelCase, not '%s'", kind)
	case strings.HasSuffix(kind, "Controller"):
		l.found(controllerKinds, n.Path(), "must be named after what it is, not '%s'", kind)
	}
}

func (l *linter) version(v document.Node) {
	if n := in(v, "name"); n.Valid() && len(validation.IsDNS1035Label(textOf(n))) > 0 {
		l.found(groupNames, n.Path(), "must be a DNS label such as 'v1', not '%s'", textOf(n))
	}
	if in(v, "schema", "openAPIV3Schema", "properties", "status").Valid() && !in(v, "subresources", "status").Valid() {
		l.found(statusSubresources, v.Path(), "must have the subresource `status`, because its objects have a status")
	}
}

// forAll are keys of Kubernetes' own that the authors of other definitions are asked to set.
var forAll = map[string]bool{"api-approved.kubernetes.io": true, "gateway.networking.k8s.io/policy": true}

// key checks the key of a label or an annotation (LINT-10).
func (l *linter) key(n document.Node) {
	key := n.Key()
	prefix, name, isPrefixed := strings.Cut(key, "/")
	if !isPrefixed {
		name = prefix
	}
	group := textOf(in(l.definition.from.Document().Root(), "spec", "group"))
	isReserved := isPrefixed && (isBelow(prefix, "kubernetes.io") || isBelow(prefix, "k8s.io"))
	isTheirs := prefix == "app.kubernetes.io" || isBelow(group, "k8s.io") || isBelow(group, "kubernetes.io") ||
		isBelow(group, "x-k8s.io")
	switch {
	case name == "":
		l.found(keyForms, n.Path(), "must have a name behind the prefix '%s'", prefix)
	case !keyName.MatchString(name):
		l.found(keyForms, n.Path(), "must be lower case with words separated by dashes, not '%s'", name)
	case isReserved && !isTheirs && !forAll[key]:
		l.found(keyForms, n.Path(), "must not have the prefix '%s', which is reserved for Kubernetes", prefix)
	}
}

func isBelow(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// wordsOf takes a camelCase name apart: podIPAddress is pod, IP and Address.
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	start := 0
	for i := 1; i < len(runes); i++ {
		isUpper, wasUpper := unicode.IsUpper(runes[i]), unicode.IsUpper(runes[i-1])
		ends := isUpper && !wasUpper || isUpper && wasUpper && i+1 < len(runes) && unicode.IsLower(runes[i+1]) &&
			!isPluralAt(runes, i+1)
		if ends {
			words = append(words, string(runes[start:i]))
			start = i
		}
	}
	return append(words, string(runes[start:]))
}

// isPluralAt reports whether an acronym ends in an s: in podIPs.
func isPluralAt(runes []rune, i int) bool {
	return runes[i] == 's' && (i+1 == len(runes) || unicode.IsUpper(runes[i+1]))
}

// knownAcronyms are acronyms that are extremely commonly known.
var knownAcronyms = map[string]bool{
	"api": true, "cidr": true, "cpu": true, "dns": true, "grpc": true, "html": true, "http": true, "https": true,
	"id": true, "ip": true, "json": true,
	"oidc": true, "pem": true, "sql": true, "ssh": true, "ssl": true, "tcp": true, "tls": true, "ttl": true,
	"udp": true, "uid": true, "uri": true,
	"url": true, "uuid": true, "vpc": true, "xml": true, "yaml": true, "iam": true, "sni": true, "csr": true,
	"crl": true, "acme": true,
}

// verbs begin names that command; the ones that are nouns as well are left out.
var verbs = map[string]bool{
	"add": true, "apply": true, "create": true, "delete": true, "ensure": true, "generate": true, "get": true,
	"make": true, "put": true,
	"remove": true, "send": true, "set": true, "update": true,
}

// heads end names that begin with a verb and are no commands: an updateStrategy is a strategy.
var heads = map[string]bool{
	"behavior": true, "config": true, "configuration": true, "count": true, "delay": true, "interval": true,
	"limit": true, "limits": true, "method": true,
	"mode": true, "option": true, "options": true, "period": true, "policies": true, "policy": true, "rate": true,
	"revision": true, "rule": true, "rules": true,
	"seconds": true, "settings": true, "size": true, "state": true, "status": true, "strategies": true,
	"strategy": true, "time": true, "timeout": true,
	"type": true, "window": true,
}

// isCommand reports whether a name says what is to be done.
func isCommand(name string, words []string) bool {
	isAddOn := words[0] == "add" && len(words) > 1 && strings.HasPrefix(words[1], "On")
	return len(words) > 1 && verbs[words[0]] && !heads[strings.ToLower(words[len(words)-1])] && !isAddOn &&
		name != "generateName"
}

// shortForms are words that are known by their short form, in lower case. External auth may be both authentication and
// authorization.
var shortForms = []string{"oauth", "basicauth", "externalauth", "emptydir"}

func hasTerm(name string) bool {
	return slices.ContainsFunc(shortForms,
		func(term string) bool { return strings.Contains(strings.ToLower(name), term) })
}

// shorts are abbreviations, and what they stand for.
var shorts = map[string]string{
	"addr": "address", "auth": "authentication or authorization", "cfg": "configuration", "cnt": "count",
	"ctx": "context", "desc": "description",
	"dest": "destination", "dir": "directory", "img": "image", "msg": "message", "mgr": "manager", "num": "number",
	"pwd": "password", "qty": "quantity", "repo": "repository", "req": "request", "resp": "response", "srv": "server",
	"svc": "service", "tmp": "temporary", "val": "value", "vol": "volume", "sec": "second", "secs": "seconds",
	"ms": "milliseconds",
}

// name checks the name of a member (LINT-2).
func (l *linter) name(s *node) {
	switch {
	case !isName(s.name):
		return
	case l.usage != nil && !l.style.fits(s.name):
		l.found(fieldNames, s.path, "must be %s as most names of the document, not '%s'", l.style.name, s.name)
		return
	case l.usage == nil && !camelCase.form.MatchString(s.name):
		l.found(fieldNames, s.path, "must be camelCase, not '%s'", s.name)
		return
	case !camelCase.form.MatchString(s.name):
		return
	}
	words := wordsOf(s.name)
	for i, w := range words {
		lower := strings.TrimSuffix(strings.ToLower(w), "s")
		if knownAcronyms[strings.ToLower(w)] {
			lower = strings.ToLower(w)
		}
		upper := strings.ToUpper(lower) + w[min(len(lower), len(w)):]
		if knownAcronyms[lower] && i > 0 && w != upper && (l.usage == nil || l.usage.capitals[lower]) {
			l.found(acronymCase, s.path, "must have all letters of '%s' in one case: '%s'", w, upper)
		}
		if full := shorts[strings.ToLower(w)]; full != "" && !hasTerm(s.name) {
			l.found(abbreviatedNames, s.path, "must be written out: '%s' stands for %s", w, full)
		}
	}
	switch {
	case isCommand(s.name, words):
		l.found(imperativeNames, s.path, "must be declarative; '%s' is a command", s.name)
	case len(words) > 1 && words[0] == "is" && s.typeOf() == "boolean":
		l.found(booleanPrefixes, s.path, "must be named by the property, without 'is'")
	case strings.HasSuffix(strings.ToLower(s.name), "timestamp") || strings.HasSuffix(s.name, "Stamp"):
		l.found(timeNames, s.path, "must be named as in 'somethingTime'")
	}
	l.unit(s, words)
}

// unit checks the names of durations (LINT-3).
func (l *linter) unit(s *node, words []string) {
	last := strings.ToLower(words[len(words)-1])
	kind := s.typeOf()
	isNumber := kind == "integer" || kind == "number"
	switch last {
	case "timeout", "deadline", "duration", "delay", "interval", "period", "ttl":
		if isNumber {
			l.found(durationUnits, s.path, "must say its unit: '%s'", l.style.with(s.name, "seconds"))
		} else if kind == "string" {
			l.found(durationUnits, s.path, "must be an integer: '%s'", l.style.with(s.name, "seconds"))
		}
	case "minutes", "hours", "days", "milliseconds", "millis":
		if isNumber && len(words) > 1 {
			l.found(durationUnits, s.path, "must be in seconds: '%s' is in %s", s.name, last)
		}
	}
	for i, w := range words {
		if w == "Interval" || i == 0 && w == "interval" {
			l.found(periodNames, s.path, "must be named with 'period', not 'interval'")
		}
	}
}
