package proxy

// update is the way of an object that replaces the stored one.
func update(r *request, a attempt) error {
	s := r.scope.storage
	if err := s.CheckOptions(a.Write); err != nil {
		return err
	}
	if err := decodeBody(r, a); err != nil {
		return err
	}
	if a.Object == nil {
		return writeOfNothing(r, a)
	}
	if err := complete(r, a); err != nil {
		return err
	}
	r.telemetry.events.NoteRequest(a.Object)
	if s.NeedsExisting(a.Write) {
		if err := s.Get(a.Write); err != nil {
			return err
		}
	}
	if err := keepOwned(r, a, s); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := s.PrepareForUpdate(a.Write); err != nil { // what it may not change stays as it is stored
		return err
	}
	if err := setDefaults(r, a, s); err != nil {
		return err
	}
	if err := admit(r, a, s); err != nil {
		return err
	}
	return s.Update(a.Write)
}
