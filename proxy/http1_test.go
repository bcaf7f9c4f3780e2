package proxy

import (
	"github.com/admission-gateway/gateway/internal/http1/http1test"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// Tests speak HTTP by hand.
var (
	dial       = http1test.Dial
	send       = http1test.Send
	expect     = http1test.Expect
	chunks     = http1test.Chunks
	readAnswer = http1test.ReadAnswer
	isReset    = http1test.IsReset

	newRecorder   = http1test.NewRecorder
	driven        = http1test.Driven
	accept        = http1test.Accept
	listenBackend = http1test.ListenBackend
	backendScheme = http1test.BackendScheme
	overTLS       = http1test.OverTLS
	behindTLS     = http1test.BehindTLS
	newTLS        = http1test.NewTLS

	recordAllocations = testutil.RecordAllocations
	bytesBy           = testutil.BytesBy
)

const (
	getHead     = http1test.GetHead
	postHead    = http1test.PostHead
	chunkedHead = http1test.ChunkedHead
	smallReply  = http1test.SmallReply
	body7       = http1test.Body7
	ourLines    = http1test.OurLines
)

type (
	recorder = http1test.Recorder
	answer   = http1test.Answer
)
