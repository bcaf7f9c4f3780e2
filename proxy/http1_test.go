package proxy

import (
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// Tests speak HTTP by hand.
var (
	dial       = h1test.Dial
	send       = h1test.Send
	expect     = h1test.Expect
	chunks     = h1test.Chunks
	readAnswer = h1test.ReadAnswer
	isReset    = h1test.IsReset

	newRecorder   = h1test.NewRecorder
	driven        = h1test.Driven
	accept        = h1test.Accept
	listenBackend = h1test.ListenBackend
	backendScheme = h1test.BackendScheme
	overTLS       = h1test.OverTLS
	behindTLS     = h1test.BehindTLS
	newTLS        = h1test.NewTLS

	recordAllocations = testutil.RecordAllocations
	bytesBy           = testutil.BytesBy
)

const (
	getHead     = h1test.GetHead
	postHead    = h1test.PostHead
	chunkedHead = h1test.ChunkedHead
	smallReply  = h1test.SmallReply
	body7       = h1test.Body7
	ourLines    = h1test.OurLines
)

type (
	recorder = h1test.Recorder
	answer   = h1test.Response
)
