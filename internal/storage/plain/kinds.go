package plain

import "github.com/admission-gateway/gateway/internal/storage"

// The kinds of stores. Each says all of what it does: a literal that leaves a strategy out does not compile.

// objects are the objects of a resource.
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
		appliedPatches{c, strategy, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// objectsPatched are objects at a backend that has PATCH itself.
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
		sentPatches{c, strategy, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// statusOfObjects is the status of objects at a backend that does not keep it apart: a write to it is one of the object
// in which nothing else changes (STAT-2).
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
		appliedPatches{c, strategy, writes},
		nativeDeletions{c, wholeObject(c)},
		nil,
	}
}

// statusPatched is the status of such objects at a backend that has PATCH itself.
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
		sentStatusPatches{sentPatches{c, strategy, writes}},
		nativeDeletions{c, wholeObject(c)},
		nil,
	}
}

// nativeStatus is the status of objects at a backend that keeps it apart itself.
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

// scaleOfObjects is the scale of objects at a backend that has none. It is the Scale of a custom resource in Kubernetes,
// with one difference: what results is admitted as an update of the object too, so that no policy about the object can
// be passed by.
func newScale(c *collection) *Store {
	behind := *c
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

// scaledObjects are objects whose writes are answered with a Scale.
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
		appliedPatches{c, strategy, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// subresource is any other subresource, which the backend keeps itself.
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

// operation stores nothing that the gateway knows of: its body is admitted and sent on, and the answer passes.
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

// undescribed are objects that no policy file describes.
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
		appliedPatches{c, strategy, writes},
		deletionsOf(c, wholeObject(c)),
		nil,
	}
}

// undescribedSubresource is a subresource of such objects.
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
