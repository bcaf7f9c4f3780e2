package plain

// The kinds of stores. Each literal names all strategies of its Store, without keys: one that leaves a
// strategy out does not compile. The last value is the Scaler; nil if there is none.

// newObjects returns the store of the objects of a resource.
func newObjects(a *access) *Store {
	strategy := objectStrategy{a}
	writes := objectWrites{a}
	return &Store{
		a,
		objectReads{a},
		objectBodies{a},
		strategy,
		wholeObject(a),
		writes,
		appliedPatches{a, writes},
		deletionsOf(a, wholeObject(a)),
		nil,
	}
}

// newPatchedObjects returns the store of objects at a backend that has PATCH itself.
func newPatchedObjects(a *access) *Store {
	strategy := objectStrategy{a}
	writes := objectWrites{a}
	return &Store{
		a,
		objectReads{a},
		patchedBodies{a},
		strategy,
		wholeObject(a),
		writes,
		sentPatches{a, writes},
		deletionsOf(a, wholeObject(a)),
		nil,
	}
}

// newStatus returns the store of the status of objects at a backend that does not keep it apart: a write
// of it is one of the object in which nothing else changes (STAT-2).
func newStatus(a *access) *Store {
	strategy := statusStrategy{a}
	writes := objectWrites{a}
	return &Store{
		a,
		statusReads{a},
		objectBodies{a},
		strategy,
		wholeObject(a),
		writes,
		appliedPatches{a, writes},
		nativeDeletions{a, wholeObject(a)},
		nil,
	}
}

// newPatchedStatus returns the store of the status of such objects at a backend that has PATCH itself.
func newPatchedStatus(a *access) *Store {
	strategy := statusStrategy{a}
	writes := objectWrites{a}
	return &Store{
		a,
		statusReads{a},
		objectBodies{a},
		strategy,
		wholeObject(a),
		writes,
		sentStatusPatches{sentPatches{a, writes}},
		nativeDeletions{a, wholeObject(a)},
		nil,
	}
}

// newNativeStatus returns the store of the status of objects at a backend that keeps it apart itself.
func newNativeStatus(a *access) *Store {
	return &Store{
		a,
		passedReads{a},
		nativeStatusBodies{a},
		nativeStatusStrategy{a},
		partOfObject(a),
		passedWrites{a},
		refusedPatches{},
		nativeDeletions{a, partOfObject(a)},
		nil,
	}
}

// newScale returns the store of the scale of objects at a backend that has none. It is the Scale of a
// custom resource in Kubernetes, with one difference: the result is admitted as an update of the object
// too, so that no policy about the object is passed by.
func newScale(a, ofObject *access) *Store {
	return &Store{
		a,
		scaleReads{a},
		subresourceBodies{a},
		subresourceStrategy{a},
		partOfObject(a),
		passedWrites{a}, // a Scale is written as its object
		refusedPatches{},
		nativeDeletions{a, partOfObject(a)},
		&scaler{a, newScaledObjects(ofObject)},
	}
}

// newScaledObjects returns the store of objects whose writes are answered with a Scale.
func newScaledObjects(a *access) *Store {
	strategy := objectStrategy{a}
	writes := scaledWrites{objectWrites{a}}
	return &Store{
		a,
		objectReads{a},
		objectBodies{a},
		strategy,
		wholeObject(a),
		writes,
		appliedPatches{a, writes},
		deletionsOf(a, wholeObject(a)),
		nil,
	}
}

// newSubresource returns the store of any other subresource, which the backend keeps itself.
func newSubresource(a *access) *Store {
	return &Store{
		a,
		passedReads{a},
		subresourceBodies{a},
		subresourceStrategy{a},
		storedSubresource{a},
		passedWrites{a},
		refusedPatches{},
		nativeDeletions{a, storedSubresource{a}},
		nil,
	}
}

// newOperation returns the store of an operation, which stores nothing that the gateway knows of: its body
// is admitted and sent on, and the answer passes.
func newOperation(a *access) *Store {
	return &Store{
		a,
		passedReads{a},
		operationBodies{a},
		operationStrategy{},
		nothingStored{},
		passedWrites{a},
		refusedPatches{},
		nativeDeletions{a, nothingStored{}},
		nil,
	}
}

// newUndescribed returns the store of objects that no policy file describes.
func newUndescribed(a *access) *Store {
	strategy := objectStrategy{a}
	writes := objectWrites{a}
	return &Store{
		a,
		objectReads{a},
		undescribedBodies{a},
		strategy,
		wholeObject(a),
		writes,
		appliedPatches{a, writes},
		deletionsOf(a, wholeObject(a)),
		nil,
	}
}

// newUndescribedSubresource returns the store of a subresource of such objects.
func newUndescribedSubresource(a *access) *Store {
	return &Store{
		a,
		passedReads{a},
		undescribedBodies{a},
		subresourceStrategy{a},
		storedSubresource{a},
		passedWrites{a},
		refusedPatches{},
		nativeDeletions{a, storedSubresource{a}},
		nil,
	}
}
