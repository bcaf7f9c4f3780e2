package storage

import (
	"errors"

	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// An Account is the gateway's own at a backend. By it the gateway reads what it has to know to judge a write: a
// client that may write an object need not be allowed to read it. Whether the client may write is for the backend to
// say.
type Account struct {
	// Client sends the requests of the account.
	Client *upstream.Client
	// AppendHead appends the head of a GET without the empty line that ends it.
	AppendHead func(dst, target []byte) ([]byte, error)
	// Answered is called with the code of each answer.
	Answered func(code int)
	// Lacks is called for a read that the backend did not let the account make, with the backend's
	// reason.
	Lacks func(rule status.AccessRule, reason string)
}

// ErrUnseen says that the request is only explained, and that the client may not see what it depends on.
var ErrUnseen = errors.New("the client may not see what the explanation would have to show")

func noAccount() error {
	return status.ServiceUnavailable("the gateway has no account now by which to ask the backend", 1)
}
