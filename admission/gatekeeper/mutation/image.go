package mutation

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// assignImage sets parts of the name of an image.
type assignImage struct{ domain, path, tag string }

func (a assignImage) set(w *walk, object document.Node, s *step) (bool, error) {
	now, exists := object.Lookup(s.member)
	if exists && now.Kind() != document.String {
		return false, fmt.Errorf("must be a string, not %s", now.Kind().WithArticle())
	}
	name := a.apply(now.Str())
	if exists && now.Is(name) {
		return false, nil
	}
	w.begin()
	w.document.SetString(object, s.name, name)
	return true, nil
}

func (a assignImage) fresh(_ *walk, dst []byte) ([]byte, bool) {
	return document.AppendString(dst, a.apply("")), true
}
func (assignImage) item() (document.Node, bool) { return document.Node{}, false }
func (assignImage) kind() kindOfValue           { return stringValue }
func (assignImage) isFinal() bool               { return true }

// The syntax of the parts of an image's name. No part may be read as another one when the name is
// parsed again, for then the mutation would never end.
var (
	imageDomain = regexp.MustCompile(`(^\w[\w\-_]*\.[\w\-_\.]*[\w](:\d+)?$)|(^localhost(:\d+)?$)`)
	imagePath   = regexp.MustCompile(`^[a-z0-9]+(?:(?:(?:[._/]|__|[-]*)[a-z0-9]+)+)?`)
	imageTag    = regexp.MustCompile(`(^:[\w][\w.-]{0,127}$)|(^@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*[:][0-9A-Fa-f]{32,}$)`)
)

// apply gives the name of an image the parts that are set.
func (a assignImage) apply(name string) string {
	domain, rest := splitDomain(name)
	path, tag := rest, ""
	if i := strings.IndexAny(rest, ":@"); i >= 0 {
		path, tag = rest[:i], rest[i:]
	}
	if a.domain != "" {
		domain = a.domain
	}
	if a.path != "" {
		path = a.path
	}
	if a.tag != "" {
		tag = a.tag
	}
	if domain != "" {
		domain += "/"
	}
	return domain + path + tag
}

// splitDomain takes the domain off, which has a dot or a port, or is localhost.
func splitDomain(name string) (domain, rest string) {
	first, rest, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(first, ".:") && first != "localhost" {
		return "", name
	}
	return first, rest
}

// check returns a parameter and its fault.
func (a assignImage) check() (parameter string, err error) {
	switch {
	case a == assignImage{}:
		return "", errors.New("must set one of `assignDomain`, `assignPath` and `assignTag`")
	case a.domain != "" && !imageDomain.MatchString(a.domain):
		return "assignDomain", fmt.Errorf("must be a fully qualified domain name or localhost, not '%s'", a.domain)
	case a.path != "" && imagePath.FindString(a.path) != a.path:
		return "assignPath", fmt.Errorf("must be the path of an image, not '%s'", a.path)
	case a.tag != "" && !imageTag.MatchString(a.tag):
		return "assignTag", fmt.Errorf("must be the tag or the digest of an image, beginning with ':' or '@', not '%s'",
			a.tag)
	}
	if domain, _ := splitDomain(a.path); a.domain == "" && domain != "" {
		return "assignDomain", fmt.Errorf("must be set if assignPath begins with what may be a domain, as '%s' does",
			a.path)
	}
	return "", nil
}
