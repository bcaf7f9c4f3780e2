package http1

import "errors"

// ErrInterrupted is the error of a body whose reader was interrupted.
var ErrInterrupted = errors.New("the stream was interrupted")
