package plain

import (
	"bytes"
	"net/http"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// Writes to one object that read it first come one after the other. The answer to a PUT may spare
// the next one its read. With an ETag such an answer says that the object was stored exactly as it
// was sent (RFC 9110, 9.3.4). Not every backend keeps to that: many answer with the request's own
// bytes, or make an ETag of whatever they answer, and set fields of their own all the same. So the
// next write goes on from an answer only if
//
//   - the answer shows the very object that was sent, with a strong ETag;
//   - the backend is known to refuse a PUT that names another version: what others write in between is not lost;
//   - an earlier answer was compared with a read that came next, and both had the same ETag and showed the same object.
//     Every
//     maxUnread writes they are compared again, and a difference is remembered;
//   - a read by the next client would be the same request: the backend may show each client another part of the object;
//   - the next client was waiting when the PUT was sent, so that no write was answered before its request came.

// maxUnread is how many writes to an object may follow one read of it.
const maxUnread = 16

// leaveStored leaves what a PUT has stored for the write that waits.
func (c conditions) leaveStored(w *storage.Write, m *storage.Message, sent time.Time) {
	e, r := w.Exchanges, &w.Exchanges.Response
	switch {
	case isPlaced(c.Resource), w.Existing.Pin != storage.PinnedByETag ||
		c.Resource.Backend.Versions != resource.ETagVersions,
		!c.Comparison.refusesOthers() || c.Comparison.answers.get() == NotCompared,
		!e.IsAwaited():
		return
	case r.Status() != http.StatusOK || r.IsStream() || !r.IsJSON() || len(r.ContentEncoding()) > 0,
		!isQuoted(strong(r.ETag())) || bytes.Equal(r.ETag(), w.Existing.ETag),
		!c.isSame(w, r.Body(), m.Body):
		return
	}
	e.Leave(c.Backend, e.ItemTarget(&w.Info), sent, w.Existing.Unread+1)
}

// lastStored returns what the write before has stored at a target; nil if this one has to read it.
func (c conditions) lastStored(w *storage.Write, target []byte) *storage.LastStored {
	last := w.Exchanges.LastStored(c.Backend, target)
	if last == nil || hasPreconditions(w.Exchanges.Head) || !c.Comparison.refusesOthers() {
		return nil
	}
	return last
}

// goesOnFrom reports whether a write may go on from what the write before has stored, without a
// read.
func (c conditions) goesOnFrom(last *storage.LastStored) bool {
	return last.Unread < maxUnread && c.Comparison.answers.get() == Compared
}

// compareLast compares what the write before has stored, as the answer to it says, with the answer
// to a read.
func (c conditions) compareLast(w *storage.Write, last *storage.LastStored, answer *message.Response) {
	if last == nil || answer.Status() != http.StatusOK || !bytes.Equal(answer.Header("ETag"), last.ETag) {
		return // another writer came between, or the answer to a PUT has an ETag of its own
	}
	c.Comparison.noteAnswers(c.isSame(w, answer.Body(), last.Body))
}

// refusesOthers reports whether the backend is known to refuse a PUT that names another version
// than the stored one, by an ETag that it gives itself.
func (c *Comparison) refusesOthers() bool { return c.givesStrong() && c.put.get() == Compared }

// noteAnswers remembers whether an object was read as the answer to the write before had shown it.
// Once it was not, nothing is taken from answers any more.
func (c *Comparison) noteAnswers(areStored bool) {
	switch known := c.answers.get(); {
	case !areStored:
		c.answers.set(NotCompared)
	case known == unknown:
		c.answers.known.CompareAndSwap(uint32(unknown), uint32(Compared))
	}
}
