package resource

// A Success says how an API answers an operation that it did, by its document.
type Success struct {
	Method string
	// Templates are the paths at the API's servers, as the document writes them.
	Templates []string
	// Codes are the status codes that the document declares for it, in its order.
	Codes []int
	// Media is the media type of the answer, and Body an answer of it: an example of the document, or one that is made
	// of the schema. Both are empty if the answer has no body, or none that can be made.
	Media string
	Body  []byte
}
