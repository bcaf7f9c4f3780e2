package plain

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

const scaleSubresource = "scale"

// scaleReads makes a Scale of the object.
type scaleReads struct{ a *access }

// Read implements storage.Reader.
func (s scaleReads) Read(r *storage.Request) error {
	w := storage.Write{Subject: r.Subject, Exchanges: &r.Exchanges}
	defer w.Release()
	answer, err := r.ReadStored(s.a.Backend, r.ItemTarget(&r.Info), s.a.Limits)
	if err != nil {
		return err
	}
	switch code := answer.Status(); {
	case code == http.StatusNotFound:
		return status.NotFound(r.Info.GroupResource(), r.Info.Name)
	case code != http.StatusOK:
		return storage.NewBackendError(&r.Info, answer)
	}
	if err := s.a.reader.take(&w, answer.Body(), answer.Header("ETag"), true); err != nil {
		return err
	}
	scale, isSet, err := scaleOf(s.a.Resource, &w, w.Existing.Object)
	switch {
	case err != nil:
		return status.Internal("%s", err.Error())
	case !isSet:
		return status.Internal("the spec replicas field %q does not exist",
			"."+storage.PathString(s.a.Resource.Subresources.Scale.Replicas))
	}
	r.Response.StartJSON(http.StatusOK, w.Existing.ETag, scale.json())
	return nil
}

// A scale is a Scale.
type scale struct{ autoscalingv1.Scale }

// json returns the Scale as Kubernetes writes it.
func (s *scale) json() []byte {
	b, err := json.Marshal(&s.Scale)
	if err != nil {
		return []byte("{}") // each of these fields can be written
	}
	return b
}

// scaleOf reads the Scale of an object, and whether the number of replicas is set.
func scaleOf(r *resource.Resource, w *storage.Write, d *document.Document) (*scale, bool, error) {
	o := &scale{autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Name: w.Info.Name, Namespace: w.Info.ObjectNamespace(),
			ResourceVersion: string(w.Existing.Version)},
	}}
	if r.Envelope == resource.Kubernetes {
		metadata := storage.Metadata(d)
		o.UID = types.UID(storage.TextIn(metadata, "uid"))
		o.ResourceVersion = storage.TextIn(metadata, "resourceVersion")
		// none if it is no time
		_ = o.CreationTimestamp.UnmarshalQueryParameter(storage.TextIn(metadata, "creationTimestamp"))
	}
	replicas, isSet, err := number(d.Root(), r.Subresources.Scale.Replicas)
	if err != nil {
		return nil, false, err
	}
	o.Spec.Replicas = replicas
	if o.Status.Replicas, _, err = number(d.Root(), r.Subresources.Scale.StatusReplicas); err != nil {
		return nil, false, err
	}
	if at, found := storage.Find(d.Root(), r.Subresources.Scale.Selector); found && at.Kind() != document.Null {
		if at.Kind() != document.String {
			return nil, false, fmt.Errorf("`%s` must be a string, not %s", at.Path(), at.Kind().WithArticle())
		}
		o.Status.Selector = string(append([]byte(nil), at.Str()...))
	}
	return o, isSet, nil
}

// number reads an int32.
func number(object document.Node, path resource.FieldPath) (n int32, found bool, err error) {
	at, found := storage.Find(object, path)
	if !found || at.Kind() == document.Null {
		return 0, false, nil
	}
	v, ok := at.Int64()
	if !ok || v < math.MinInt32 || v > math.MaxInt32 {
		return 0, false, fmt.Errorf("`%s` must be a 32-bit integer", at.Path())
	}
	return int32(v), true, nil
}

// unsetReplicas represents a number of replicas that is not set, for patches to set it, as in
// Kubernetes.
const unsetReplicas = math.MinInt32

// A scaler makes an update of the object of a write of its Scale.
type scaler struct {
	a      *access // of the Scale, which no schema of the resource describes
	object *Store
}

// Object implements storage.Scaler.
func (s *scaler) Object() storage.Storage { return s.object }

// ReadScale implements storage.Scaler.
func (s *scaler) ReadScale(w, asked *storage.Write) error {
	before, isSet, err := scaleOf(s.a.Resource, w, w.Existing.Object)
	if err != nil {
		return status.Internal("%s", err.Error())
	}
	text := w.Exchanges.Body
	if w.Patch != nil {
		base := *before
		if !isSet {
			base.Spec.Replicas = unsetReplicas
		}
		d, err := w.Exchanges.Parse(base.json(), s.a.Limits.Sent)
		if err != nil {
			return err
		}
		defer d.Release()
		if err := s.a.apply(w, d); err != nil {
			return err
		}
		text = d.AppendTo(nil)
	}
	after, err := s.decode(w, before, text, isSet)
	if err != nil {
		return err
	}
	asked.Info = w.Info
	if asked.Existing.Object, err = w.Exchanges.Parse(before.json(), s.a.Limits.Sent); err != nil {
		return err
	}
	asked.Object, err = w.Exchanges.Parse(after.json(), s.a.Limits.Sent)
	return err
}

// decode reads a Scale as an API server does.
func (s *scaler) decode(w *storage.Write, before *scale, text []byte, wasSet bool) (*scale, error) {
	o := &scale{}
	unknown, err := kjson.UnmarshalStrict(text, &o.Scale)
	if err != nil {
		return nil, undecodable(w, err.Error())
	}
	if len(unknown) > 0 {
		switch w.FieldValidation() {
		case resource.FieldValidationStrict:
			message := "strict decoding error: "
			for i, one := range unknown {
				if i > 0 {
					message += ", "
				}
				message += one.Error()
			}
			return nil, undecodable(w, message)
		case resource.FieldValidationWarn:
			for _, one := range unknown {
				w.Exchanges.Warn(one.Error())
			}
		}
	}
	switch {
	case o.APIVersion != "" && o.APIVersion != "autoscaling/v1":
		return nil, status.BadRequest("the API version in the data (%s) does not match the expected API version (autoscaling/v1)", storage.Short(o.APIVersion))
	case o.Kind != "" && o.Kind != "Scale":
		return nil, status.BadRequest("the kind in the data (%s) does not match the expected kind (Scale)",
			storage.Short(o.Kind))
	case o.Name != "" && o.Name != w.Info.Name:
		return nil, status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)",
			storage.Short(o.Name), w.Info.Name)
	case o.Namespace != "" && o.Namespace != w.Info.ObjectNamespace():
		return nil, status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case o.Spec.Replicas == unsetReplicas && !wasSet:
		return nil, status.BadRequest("the spec replicas field %q cannot be empty",
			"."+storage.PathString(s.a.Resource.Subresources.Scale.Replicas))
	}
	if stored := before.UID; w.Info.Verb == resource.VerbUpdate && o.UID != "" && o.UID != stored {
		return nil, status.Conflict(w.Info.GroupResource(), w.Info.Name,
			"Precondition failed: UID in precondition: "+storage.Short(string(o.UID))+", UID in object meta: "+
				string(stored))
	}
	// Only the number of replicas counts, and the version.
	version, replicas := o.ResourceVersion, o.Spec.Replicas
	*o = *before
	o.Spec.Replicas = replicas
	if version != "" {
		if version != o.ResourceVersion {
			return nil, w.Conflict()
		}
		w.IsPinned = w.Info.Verb == resource.VerbUpdate
	}
	return o, nil
}

// undecodable returns the Status of a Scale that cannot be read.
func undecodable(w *storage.Write, message string) error {
	if w.Patch != nil {
		return status.Invalid(apischema.GroupKind{}, "",
			field.ErrorList{field.Invalid(field.NewPath("patch"), "Scale", message)}, 0)
	}
	return status.BadRequest("Scale in version \"v1\" cannot be handled as a Scale: %s", message)
}

// ApplyScale implements storage.Scaler.
func (s *scaler) ApplyScale(w, asked *storage.Write) error {
	replicas, _, err := number(asked.Object.Root(), resource.FieldPath{"spec", "replicas"})
	if err != nil {
		return status.BadRequest("%s", err.Error())
	}
	result := w.Existing.Object.Clone()
	w.SetObject(result)
	w.Shown = shows(s.a.Resource, storage.ShownObject)
	w.ContentType = typeJSON
	if err := storage.SetAt(result, s.a.Resource.Subresources.Scale.Replicas, strconv.AppendInt(nil, int64(replicas),
		10)); err != nil {
		return w.Unplaced(err)
	}
	w.Info.Path = string(w.Exchanges.ItemTarget(&w.Info))
	w.Info.Subresource = ""
	isPinned := w.IsPinned
	err = checkVersion(s.a.Resource, w)
	w.IsPinned = isPinned // the version in the object is the stored one, and no word of the client's
	return err
}

// scaledWrites writes objects and answers with a Scale.
type scaledWrites struct{ ofObject objectWrites }

// Create implements storage.Creater.
func (s scaledWrites) Create(w *storage.Write) error { return s.ofObject.Create(w) }

// Update implements storage.Updater. It writes the object and answers with its Scale.
func (s scaledWrites) Update(w *storage.Write) error {
	isLast, err := s.ofObject.isLastUpdate(w)
	switch {
	case err != nil:
		return err
	case w.Info.Options.DryRun && emulates(s.ofObject.a.Resource, resource.DryRun):
		if len(w.Existing.Version) == 0 {
			if err := s.ofObject.toStoredForm(w); err != nil {
				return err
			}
		}
		return s.answerScale(w, w.Object, w.PinnedETag())
	case isLast:
		return s.removeScaled(w)
	case s.ofObject.isUnchanged(w):
		w.SetObject(w.Existing.Object)
		w.Existing.Object = nil
		return s.answerScale(w, w.Object, w.PinnedETag())
	}
	return s.replaceScaled(w)
}

// replaceScaled sends the object in the place of the stored one.
func (s scaledWrites) replaceScaled(w *storage.Write) error {
	m, err := s.ofObject.message(w)
	if err != nil {
		return err
	}
	s.ofObject.a.warnOfHidden(w)
	m.Method, m.Target, m.ContentType = methodPut, w.Exchanges.ItemTarget(&w.Info), typeJSON
	m.IsEdited, m.Whole = true, 2*s.ofObject.a.Limits.Body
	if err := s.ofObject.a.sender.send(w, &m); err != nil {
		return err
	}
	if err := refusedPin(w); err != nil {
		return err
	}
	o, isWritten, err := s.ofObject.written(w, m.Body)
	if !isWritten {
		return nil
	}
	defer o.release(w)
	if err != nil {
		return err
	}
	if r := &w.Exchanges.Response; !r.IsStream() && r.Status() == http.StatusOK && r.IsJSON() {
		// Headers of the backend's answer stay: it is an answer of this kind.
		text, err := s.scaleText(w, o.object)
		if err == nil {
			w.Exchanges.Response.AnswerEditedBytes(text)
		}
		return err
	}
	return s.answerScale(w, o.object, o.etag)
}

func (s scaledWrites) removeScaled(w *storage.Write) error {
	if err := s.ofObject.remove(w, http.StatusOK); err != nil || !storage.IsDone(w.Exchanges.Response.Status()) {
		return err
	}
	return s.answerScale(w, w.Object, w.PinnedETag())
}

// answerScale makes the Scale of an object the answer.
func (s scaledWrites) answerScale(w *storage.Write, object *document.Document, etag []byte) error {
	text, err := s.scaleText(w, object)
	if err == nil {
		w.Exchanges.Response.StartJSON(http.StatusOK, etag, text)
	}
	return err
}

// scaleText returns the Scale of an object as it is answered.
func (s scaledWrites) scaleText(w *storage.Write, object *document.Document) ([]byte, error) {
	s.ofObject.setVersion(w, object)
	if err := object.Err(); err != nil {
		return nil, err
	}
	o, _, err := scaleOf(s.ofObject.a.Resource, w, object)
	if err != nil {
		return nil, status.Internal("%s", err.Error())
	}
	return o.json(), nil
}
