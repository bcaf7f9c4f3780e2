package proxy

import (
	"errors"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// errTaken tells that a name that the gateway made is that of another object.
var errTaken = errors.New("the generated name is taken")

// maxNames bounds how many names are tried for an object that leaves its name to the server, as in Kubernetes (META-3).
const maxNames = 8

// checkCreate refuses what only stored objects have, and looks for an object of the name where the backend would not
// refuse it itself (META-4).
func (x *exchange) checkCreate() error {
	if x.info.Verb != resource.VerbCreate || x.info.Subresource != "" {
		return nil
	}
	if x.emulatesMetadata(resource.ResourceVersions) {
		version, err := text(metadataOf(x.doc), "resourceVersion", "metadata.")
		if err != nil {
			return err
		}
		if version != "" && version != "0" {
			// As Kubernetes answers, which takes it for a fault of its own.
			e := status.Internal("")
			e.ErrStatus.Message, e.ErrStatus.Reason, e.ErrStatus.Details = "resourceVersion should not be set on objects to be created", "", nil
			return e
		}
	}
	if x.info.Name == "" {
		return nil
	}
	switch {
	case x.info.Options.DryRun && x.emulates(resource.DryRun):
		return x.lookBefore()
	case !x.emulates(resource.ExistingNames):
		return nil
	case x.res.Versions != resource.ETagVersions:
		if err := x.lock(); err != nil {
			return err
		}
		return x.lookBefore()
	}
	x.pin = pinAbsent
	return nil
}

// lookBefore refuses to create an object that exists.
func (x *exchange) lookBefore() error {
	path, err := x.createdPath()
	if err != nil {
		return err
	}
	if err := x.get(path); err != nil {
		return err
	}
	switch code := x.oldAnswer.StatusCode(); {
	case code == fasthttp.StatusNotFound || code == fasthttp.StatusGone:
		return nil
	case code != fasthttp.StatusOK:
		return x.backendError(&x.oldAnswer)
	}
	return x.taken()
}

// taken is the answer to a create of a name that another object has; a name that the gateway made is made again.
func (x *exchange) taken() error {
	if x.generated {
		return errTaken
	}
	return status.AlreadyExists(x.info.GroupResource(), x.info.Name)
}

// createdPath is the path that an object that is to be created will have.
func (x *exchange) createdPath() ([]byte, error) {
	if problems := content.IsPathSegmentName(x.info.Name); len(problems) > 0 {
		return nil, status.BadRequest("the name of the object (%s) %s", short(x.info.Name), strings.Join(problems, ", "))
	}
	x.target = x.target[:0]
	if x.info.APIPrefix != "" {
		x.target = append(append(x.target, x.info.Path...), '/')
		x.target = append(x.target, url.PathEscape(x.info.Name)...) // what is stored may have any name
		return x.target, nil
	}
	for _, template := range x.res.Paths {
		if strings.Contains(template, "{name}") {
			path := strings.NewReplacer("{name}", url.PathEscape(x.info.Name), "{namespace}", url.PathEscape(x.info.Namespace)).Replace(template)
			x.target = append(x.target, path...)
			break
		}
	}
	return x.target, nil
}
