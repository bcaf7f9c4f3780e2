package proxy

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// emulatesDeletion tells whether the gateway deletes objects as Kubernetes does, on a backend that only drops them (RW-5).
func (x *exchange) emulatesDeletion() bool {
	switch x.info.Verb {
	case resource.VerbDelete, resource.VerbDeleteCollection:
		return x.info.Subresource == "" && x.emulatesMetadata(resource.Deletion)
	}
	return false
}

// removalSteps are the way of a deletion that the gateway does as Kubernetes would.
var removalSteps = []step{
	(*exchange).parse,
	(*exchange).readDeleteOptions,
	(*exchange).fetchOld,           // what is deleted, and what the deletion is pinned to
	(*exchange).checkPreconditions, // which may have to be a certain object, or version
	(*exchange).validate,           // 12
	(*exchange).removeOld,          // 13
	(*exchange).answer,             // 14
}

// checkPreconditions holds the stored object to what the options say of it.
func (x *exchange) checkPreconditions() error {
	metadata, kind := metadataOf(x.old), schema.GroupResource{Group: x.res.Group, Resource: x.res.Kind}
	if p := x.options.Preconditions; p != nil {
		if uid := textIn(metadata, "uid"); p.UID != nil && string(*p.UID) != uid {
			return status.Conflict(kind, x.info.Name, "the UID in the precondition ("+short(string(*p.UID))+") does not match the UID in record ("+uid+
				"). The object might have been deleted and then recreated")
		}
		if version := textIn(metadata, "resourceVersion"); p.ResourceVersion != nil && *p.ResourceVersion != version {
			return status.Conflict(kind, x.info.Name, "the ResourceVersion in the precondition ("+short(*p.ResourceVersion)+
				") does not match the ResourceVersion in record ("+version+"). The object might have been modified")
		}
	}
	if unsafe := x.options.IgnoreStoreReadErrorWithClusterBreakingPotential; unsafe != nil && *unsafe {
		return status.Conflict(x.info.GroupResource(), x.info.Name, "an unsafe deletion is not allowed, because the stored object can be read")
	}
	return nil
}

// removeOld deletes the object that was judged, or, where finalizers keep it, stores that it is being deleted.
func (x *exchange) removeOld() error {
	finalizers, changed := x.finalizersLeft()
	if len(finalizers) > 0 {
		return x.markDeleting(finalizers, changed)
	}
	if !x.info.Options.DryRun {
		if err := x.forward(); err != nil {
			return err
		}
		switch code := x.code(); {
		case code == fasthttp.StatusNotFound || code == fasthttp.StatusGone:
			return status.NotFound(x.info.GroupResource(), x.info.Name)
		case !isDone(code):
			return nil // the backend's refusal is the answer
		}
	}
	x.dropAnswer()
	r := &x.ctx.Response
	r.SetStatusCode(fasthttp.StatusOK)
	r.Header.SetContentType(jsonType)
	uid := types.UID(textIn(metadataOf(x.old), "uid"))
	r.SetBody(status.AppendJSON(nil, status.Deleted(x.info.GroupResource(), x.info.Name, uid)))
	return nil
}

// isDone tells whether a backend says of a write that it was done, or will be.
func isDone(code int) bool { return code >= 200 && code < 300 }

// finalizersLeft are the finalizers that the object keeps when it is deleted with the options, and whether they differ from
// those that it has. What becomes of dependents is the business of whoever takes the finalizers out again.
func (x *exchange) finalizersLeft() (left []string, changed bool) {
	stored, _ := metadataOf(x.old).Get("finalizers")
	orphan, foreground := false, false
	for f := stored.First(); f.Valid(); f = f.Next() {
		switch name := f.Str(); {
		case f.Kind() != document.String:
		case name == metav1.FinalizerOrphanDependents:
			orphan = true
		case name == metav1.FinalizerDeleteDependents:
			foreground = true
		default:
			left = append(left, name)
		}
	}
	hadOrphan, hadForeground := orphan, foreground
	switch o := x.options; {
	case orphans(o) != nil:
		orphan, foreground = *orphans(o), false
	case o.PropagationPolicy != nil:
		orphan, foreground = *o.PropagationPolicy == metav1.DeletePropagationOrphan, *o.PropagationPolicy == metav1.DeletePropagationForeground
	}
	if orphan {
		left = append(left, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		left = append(left, metav1.FinalizerDeleteDependents)
	}
	return left, orphan != hadOrphan || foreground != hadForeground
}

// orphans is the older form of a propagation policy.
func orphans(o *metav1.DeleteOptions) *bool {
	//lint:ignore SA1019 clients send it, and Kubernetes reads it
	return o.OrphanDependents
}

// markDeleting stores the object as one that is being deleted, and answers with it.
func (x *exchange) markDeleting(finalizers []string, changed bool) error {
	marked := x.old.Clone()
	metadata := ensureMetadata(marked)
	setMissing(marked, marked.Root(), "kind", x.res.Kind)
	setMissing(marked, marked.Root(), "apiVersion", x.res.APIVersion())
	if changed {
		marked.Set(metadata, "finalizers", appendStrings(nil, finalizers))
	}
	now := time.Now().UTC()
	if deleted, err := time.Parse(time.RFC3339, textIn(metadata, "deletionTimestamp")); err != nil || deleted.After(now) {
		if generation, _ := metadata.Get("generation"); err != nil {
			if n, ok := generation.Int64(); ok && n > 0 {
				marked.Set(metadata, "generation", strconv.AppendInt(nil, n+1, 10))
			}
		}
		marked.SetString(metadata, "deletionTimestamp", now.Format(time.RFC3339))
	}
	if period, _ := metadata.Get("deletionGracePeriodSeconds"); string(period.Raw()) != "0" {
		marked.Set(metadata, "deletionGracePeriodSeconds", []byte("0"))
	}
	if x.doc != nil {
		x.doc.Release()
	}
	x.doc, x.rebuilt, x.marking = marked, true, true
	// What follows is a write of an object like any other.
	x.info.Verb = resource.VerbUpdate
	defer func() { x.info.Verb = resource.VerbDelete }()
	if x.info.Options.DryRun {
		x.settled = true
	} else if err := x.forward(); err != nil {
		return err
	}
	return x.completeWrite()
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = document.AppendString(dst, s)
	}
	return append(dst, ']')
}

// markedCode is the code of the answer about an object that finalizers keep.
func (x *exchange) markedCode() int {
	if orphan := orphans(x.options); orphan != nil && !*orphan {
		return fasthttp.StatusAccepted
	}
	return fasthttp.StatusOK
}

// finishDeletion makes of the update that takes the last finalizer from an object that is being deleted its deletion (RW-5).
func (x *exchange) finishDeletion() error {
	if x.old == nil || x.info.Verb == resource.VerbCreate || !x.emulatesMetadata(resource.Deletion) || x.info.Subresource != "" && !x.emulatesStatus() {
		return nil
	}
	metadata := metadataOf(x.doc)
	if _, deleted := given(metadataOf(x.old), "deletionTimestamp"); !deleted {
		return nil
	}
	finalizers, _ := metadata.Get("finalizers")
	period, _ := given(metadata, "deletionGracePeriodSeconds")
	seconds, _ := period.Int64()
	if x.finishing = finalizers.Len() == 0 && seconds == 0; !x.finishing || x.pin != pinField {
		return nil
	}
	etag := x.oldAnswer.Header.Peek(fasthttp.HeaderETag)
	switch {
	case len(etag) > 0:
		x.pin, x.pinned = pinMatch, append(x.pinned[:0], etag...)
	case x.res.Concurrency == resource.BestEffort:
		x.pin = pinNone
	default:
		return status.BadGateway("the backend gave the stored object no ETag, so that its deletion cannot be pinned to what was judged")
	}
	return nil
}

// completeFinish makes the answer to the deletion that an update brought about: as in Kubernetes the object as it would have
// been stored.
func (x *exchange) completeFinish() {
	code := x.code()
	if x.finishing && !x.settled && (isDone(code) || code == fasthttp.StatusNotFound || code == fasthttp.StatusGone) {
		x.dropAnswer()
		x.settled = true
	}
}

// removes tells whether what is sent to the backend is the deletion of the object.
func (x *exchange) removes() bool {
	return x.finishing || x.info.Verb == resource.VerbDelete && x.emulatesDeletion()
}
