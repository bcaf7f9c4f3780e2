package proxy

// read is the way of a GET, a LIST and a WATCH: the answer passes as it comes, but for what the storage
// completes.
func (h *handler) read() error {
	if err := h.storage.Read(&h.request); err != nil {
		return err
	}
	return h.completeAnswer(&h.request.Info)
}
