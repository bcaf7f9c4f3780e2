package h2

import (
	"fmt"

	"golang.org/x/net/http2"
)

// A ResetError is the end of a stream by the server, before its answer was complete.
type ResetError struct{ Code http2.ErrCode }

func (e *ResetError) Error() string { return fmt.Sprintf("the server ended the stream by %s", e.Code) }
