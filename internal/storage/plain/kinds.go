package plain

import "github.com/admission-gateway/gateway/internal/storage"

// The kinds of stores. Each literal names all strategies of its Store, without keys: one that leaves a
// strategy out does not compile. The last value is the Scaler; nil if there is none.

// newObjects returns the store of the objects of a resource.
func newObjects(c *collection) *Store {
	strategy := objectStrategy{c}
	writes := objectWrites{c}
	return &Store{
		c,
		objectReads{c},
		objectBodies{c},
		strategy,
		wholeObject(c),
		writes,
		appliedPatches{c, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// newPatchedObjects returns the store of objects at a backend that has PATCH itself.
func newPatchedObjects(c *collection) *Store {
	strategy := objectStrategy{c}
	writes := objectWrites{c}
	return &Store{
		c,
		objectReads{c},
		patchedBodies{c},
		strategy,
		wholeObject(c),
		writes,
		sentPatches{c, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// newStatus returns the store of the status of objects at a backend that does not keep it apart: a write
// of it is one of the object in which nothing else changes (STAT-2).
func newStatus(c *collection) *Store {
	strategy := statusStrategy{c}
	writes := objectWrites{c}
	return &Store{
		c,
		statusReads{c},
		objectBodies{c},
		strategy,
		wholeObject(c),
		writes,
		appliedPatches{c, writes},
		nativeDeletions{c, wholeObject(c)},
		nil,
	}
}

// newPatchedStatus returns the store of the status of such objects at a backend that has PATCH itself.
func newPatchedStatus(c *collection) *Store {
	strategy := statusStrategy{c}
	writes := objectWrites{c}
	return &Store{
		c,
		statusReads{c},
		objectBodies{c},
		strategy,
		wholeObject(c),
		writes,
		sentStatusPatches{sentPatches{c, writes}},
		nativeDeletions{c, wholeObject(c)},
		nil,
	}
}

// newNativeStatus returns the store of the status of objects at a backend that keeps it apart itself.
func newNativeStatus(c *collection) *Store {
	return &Store{
		c,
		passedReads{c},
		nativeStatusBodies{c},
		nativeStatusStrategy{c},
		partOfObject(c),
		passedWrites{c},
		refusedPatches{},
		nativeDeletions{c, partOfObject(c)},
		nil,
	}
}

// newScale returns the store of the scale of objects at a backend that has none. It is the Scale of a
// custom resource in Kubernetes, with one difference: the result is admitted as an update of the object
// too, so that no policy about the object is passed by.
func newScale(c *collection) *Store {
	behind := *c
	behind.Policies = c.ObjectPolicies
	c.Schemas = storage.Schemas{}
	return &Store{
		c,
		scaleReads{c},
		subresourceBodies{c},
		subresourceStrategy{c},
		partOfObject(c),
		passedWrites{c}, // a Scale is written as its object
		refusedPatches{},
		nativeDeletions{c, partOfObject(c)},
		&scaler{c, newScaledObjects(&behind)},
	}
}

// newScaledObjects returns the store of objects whose writes are answered with a Scale.
func newScaledObjects(c *collection) *Store {
	strategy := objectStrategy{c}
	writes := scaledWrites{objectWrites{c}}
	return &Store{
		c,
		objectReads{c},
		objectBodies{c},
		strategy,
		wholeObject(c),
		writes,
		appliedPatches{c, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// newSubresource returns the store of any other subresource, which the backend keeps itself.
func newSubresource(c *collection) *Store {
	c.Schemas = storage.Schemas{}
	return &Store{
		c,
		passedReads{c},
		subresourceBodies{c},
		subresourceStrategy{c},
		storedSubresource{c},
		passedWrites{c},
		refusedPatches{},
		nativeDeletions{c, storedSubresource{c}},
		nil,
	}
}

// newOperation returns the store of an operation, which stores nothing that the gateway knows of: its body
// is admitted and sent on, and the answer passes.
func newOperation(c *collection) *Store {
	return &Store{
		c,
		passedReads{c},
		operationBodies{c},
		operationStrategy{},
		nothingStored{},
		passedWrites{c},
		refusedPatches{},
		nativeDeletions{c, nothingStored{}},
		nil,
	}
}

// newUndescribed returns the store of objects that no policy file describes.
func newUndescribed(c *collection) *Store {
	strategy := objectStrategy{c}
	writes := objectWrites{c}
	return &Store{
		c,
		objectReads{c},
		undescribedBodies{c},
		strategy,
		wholeObject(c),
		writes,
		appliedPatches{c, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// newUndescribedSubresource returns the store of a subresource of such objects.
func newUndescribedSubresource(c *collection) *Store {
	return &Store{
		c,
		passedReads{c},
		undescribedBodies{c},
		subresourceStrategy{c},
		storedSubresource{c},
		passedWrites{c},
		refusedPatches{},
		nativeDeletions{c, storedSubresource{c}},
		nil,
	}
}
