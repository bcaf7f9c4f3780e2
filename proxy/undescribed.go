package proxy

import (
	"github.com/admission-gateway/gateway/internal/http1/upstream"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// passThrough is the way of a request to an ordinary API that no file describes: it passes as it came, with
// whatever method, body and protocol, and so does the answer, unless the route is closed to such requests.
func (h *handler) passThrough() (err error) {
	head := &h.incoming.Head
	if err := h.route.admit(head); err != nil {
		return err
	}
	m := storage.Message{IsSafe: h.request.IsRead() && !head.HasBody() && head.Upgrade == nil}
	switch {
	case !head.HasBody():
		if head.HasLength() {
			m.Body = []byte{}
		}
		if isTunnelled(head.Upgrade) {
			h.upgrade.protocol = head.Upgrade
		}
	case h.incoming.HasArrived():
		if err := h.body.readOpaque(); err != nil {
			return err
		}
		m.Body = h.request.Body
	default:
		m.Upload = h.incoming.Upload()
		if limit := h.request.Limits.Upload; limit > 0 {
			if m.Upload.Length() > limit {
				return tooLong(limit)
			}
			m.Upload = &boundedUpload{Upload: m.Upload, limit: limit, left: limit}
		}
	}
	h.upgrade.tunnel, err = h.request.Connect(&h.upstream.storage, &m, h.upgrade.protocol)
	return err
}

// boundedUpload is a body that its route bounds.
type boundedUpload struct {
	upstream.Upload
	limit, left int64
}

// Read implements io.Reader. What is beyond the bound does not reach the backend, which never sees a whole body then.
func (u *boundedUpload) Read(p []byte) (int, error) {
	n, err := u.Upload.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, tooLong(u.limit)
	}
	return n, err
}

// tooLong refuses a body that no file describes.
func tooLong(limit int64) error {
	return status.RequestEntityTooLarge("the body must be at most %d bytes", limit)
}
