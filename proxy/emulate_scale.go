package proxy

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

const scaleSubresource = "scale"

// emulatesScale tells whether the request is about the scale subresource of a backend that has none.
func (x *exchange) emulatesScale() bool {
	return x.info.Subresource == scaleSubresource && x.emulates(resource.ScaleSubresource)
}

// scaleSteps read like those of the subresource of a custom resource in Kubernetes, with one difference: what results is
// judged as an update of the object too, so that no policy about the object can be passed by.

// getScale answers a read of the scale subresource.
func (x *exchange) getScale() error {
	if err := x.get(x.itemPath()); err != nil {
		return err
	}
	switch code := x.oldAnswer.StatusCode(); {
	case code == fasthttp.StatusNotFound:
		return status.NotFound(x.info.GroupResource(), x.info.Name)
	case code != fasthttp.StatusOK:
		return x.backendError(&x.oldAnswer)
	}
	if err := x.takeOld(); err != nil {
		return err
	}
	scale, found, err := x.scaleOf(x.old)
	switch {
	case err != nil:
		return status.Internal("%s", err.Error())
	case !found:
		return status.Internal("the spec replicas field %q does not exist", "."+joined(x.res.Scaling.Replicas))
	}
	r := &x.ctx.Response
	r.Header.SetContentType(jsonType)
	if etag := x.oldAnswer.Header.Peek(fasthttp.HeaderETag); len(etag) > 0 {
		r.Header.SetCanonical(nameETag, etag)
	}
	r.SetBody(scale.json())
	return nil
}

// A scaleObject is a Scale.
type scaleObject struct{ autoscalingv1.Scale }

// json is the Scale as Kubernetes writes it.
func (s *scaleObject) json() []byte {
	b, err := json.Marshal(&s.Scale)
	if err != nil {
		return []byte("{}") // of these fields each can be written
	}
	return b
}

// appendScale appends the Scale of an object.
func (x *exchange) appendScale(dst []byte, object *document.Document) []byte {
	scale, _, err := x.scaleOf(object)
	if err != nil {
		return dst
	}
	return append(dst, scale.json()...)
}

// scaleOf reads the Scale of an object, and whether the number of replicas is there.
func (x *exchange) scaleOf(d *document.Document) (*scaleObject, bool, error) {
	s := &scaleObject{autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Name: x.info.Name, Namespace: x.info.ObjectNamespace(), ResourceVersion: string(x.version)},
	}}
	if x.res.Envelope == resource.Kubernetes {
		metadata := metadataOf(d)
		s.UID = types.UID(textIn(metadata, "uid"))
		s.ResourceVersion = textIn(metadata, "resourceVersion")
		_ = s.CreationTimestamp.UnmarshalQueryParameter(textIn(metadata, "creationTimestamp")) // none where it is no time
	}
	replicas, found, err := number(d.Root(), x.res.Scaling.Replicas)
	if err != nil {
		return nil, false, err
	}
	s.Spec.Replicas = replicas
	if s.Status.Replicas, _, err = number(d.Root(), x.res.Scaling.StatusReplicas); err != nil {
		return nil, false, err
	}
	if at, set := find(d.Root(), x.res.Scaling.Selector); set && at.Kind() != document.Null {
		if at.Kind() != document.String {
			return nil, false, fmt.Errorf("`%s` must be a string, not %s", at.Path(), article(at.Kind()))
		}
		s.Status.Selector = string(append([]byte(nil), at.Str()...))
	}
	return s, found, nil
}

// number reads an int32.
func number(object document.Node, path resource.FieldPath) (n int32, found bool, err error) {
	at, found := find(object, path)
	if !found || at.Kind() == document.Null {
		return 0, false, nil
	}
	v, ok := at.Int64()
	if !ok || v < math.MinInt32 || v > math.MaxInt32 {
		return 0, false, fmt.Errorf("`%s` must be a 32-bit integer", at.Path())
	}
	return int32(v), true, nil
}

// readScale reads the Scale that was sent, or makes the one that results from a patch.
func (x *exchange) readScale() error {
	before, found, err := x.scaleOf(x.old)
	if err != nil {
		return status.Internal("%s", err.Error())
	}
	x.oldScale = before
	text := x.body
	if x.info.Verb == resource.VerbPatch {
		base := *before
		if !found {
			base.Spec.Replicas = unsetReplicas
		}
		d, err := document.Parse(base.json(), x.gateway.documentLimits)
		if err != nil {
			return err
		}
		defer d.Release()
		if err := x.patchDocument(d); err != nil {
			return err
		}
		text = d.AppendTo(nil)
	}
	return x.decodeScale(text, found)
}

// unsetReplicas stands for a number of replicas that is not set, for patches to set it, as in Kubernetes.
const unsetReplicas = math.MinInt32

// decodeScale reads a Scale as an API server does.
func (x *exchange) decodeScale(text []byte, had bool) error {
	s := &scaleObject{}
	unknown, err := kjson.UnmarshalStrict(text, &s.Scale)
	if err != nil {
		return x.undecodable(err.Error())
	}
	if len(unknown) > 0 {
		switch x.fieldValidation() {
		case resource.FieldValidationStrict:
			message := "strict decoding error: "
			for i, one := range unknown {
				if i > 0 {
					message += ", "
				}
				message += one.Error()
			}
			return x.undecodable(message)
		case resource.FieldValidationWarn:
			for _, one := range unknown {
				x.warnings = append(x.warnings, one.Error())
			}
		}
	}
	switch {
	case s.APIVersion != "" && s.APIVersion != "autoscaling/v1":
		return status.BadRequest("the API version in the data (%s) does not match the expected API version (autoscaling/v1)", short(s.APIVersion))
	case s.Kind != "" && s.Kind != "Scale":
		return status.BadRequest("the kind in the data (%s) does not match the expected kind (Scale)", short(s.Kind))
	case s.Name != "" && s.Name != x.info.Name:
		return status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", short(s.Name), x.info.Name)
	case s.Namespace != "" && s.Namespace != x.info.ObjectNamespace():
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case s.Spec.Replicas == unsetReplicas && !had:
		return status.BadRequest("the spec replicas field %q cannot be empty", "."+joined(x.res.Scaling.Replicas))
	}
	if stored := x.oldScale.UID; x.info.Verb == resource.VerbUpdate && s.UID != "" && s.UID != stored {
		return status.Conflict(x.info.GroupResource(), x.info.Name, "Precondition failed: UID in precondition: "+short(string(s.UID))+", UID in object meta: "+string(stored))
	}
	// Of the Scale the number of replicas counts, and the version.
	version, replicas := s.ResourceVersion, s.Spec.Replicas
	*s = *x.oldScale
	s.Spec.Replicas = replicas
	if version != "" {
		if version != s.ResourceVersion {
			return x.conflict()
		}
		x.named = x.info.Verb == resource.VerbUpdate
	}
	x.newScale = s
	return nil
}

// undecodable is the Status of a Scale that cannot be read.
func (x *exchange) undecodable(message string) error {
	if x.info.Verb == resource.VerbPatch {
		return status.Invalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), "Scale", message)}, 0)
	}
	return status.BadRequest("Scale in version \"v1\" cannot be handled as a Scale: %s", message)
}

// admitScale lets the policies about the subresource judge the Scale, old and new.
func (x *exchange) admitScale() error {
	if !x.describe() {
		return nil
	}
	before, err := document.Parse(x.oldScale.json(), x.gateway.documentLimits)
	if err != nil {
		return err
	}
	after, err := document.Parse(x.newScale.json(), x.gateway.documentLimits)
	if err != nil {
		before.Release()
		return err
	}
	object, sent := x.old, x.doc
	x.old, x.doc = before, after
	err = x.admitAlone()
	if replicas, _, bad := number(x.doc.Root(), resource.FieldPath{"spec", "replicas"}); err == nil && bad != nil {
		err = status.BadRequest("%s", bad.Error())
	} else {
		x.newScale.Spec.Replicas = replicas
	}
	x.old.Release()
	x.doc.Release()
	x.old, x.doc = object, sent
	x.report.Reset()
	return err
}

// admitAlone runs the policies, without schema.
func (x *exchange) admitAlone() error {
	if err := x.mutate(); err != nil {
		return err
	}
	return x.validate()
}

// applyScale makes of the Scale the update of the object that it stands for.
func (x *exchange) applyScale() error {
	result := x.old.Clone()
	if err := setAt(result, x.res.Scaling.Replicas, strconv.AppendInt(nil, int64(x.newScale.Spec.Replicas), 10)); err != nil {
		result.Release()
		return x.unplaced(err)
	}
	if x.doc != nil {
		x.doc.Release()
	}
	x.doc, x.rebuilt, x.scaling = result, true, true
	x.info.Path = string(x.itemPath())
	x.info.Subresource = ""
	return nil
}
