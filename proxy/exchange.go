package proxy

import (
	"net/netip"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
	"github.com/admission-gateway/gateway/policies"
)

// exchange is one request on its way: what the steps learn of it, and memory that is kept for the next one.
type exchange struct {
	progress

	report     admission.Report
	referred   policies.Referred
	charges    ratelimit.Charges // what rate limits make of the request
	warnings   []string
	oldAnswer  fasthttp.Response
	dryAnswer  fasthttp.Response // what the backend would make of a patch
	verbatim   upstream.Answer   // of the backend, where nothing of it is changed
	answerHead wire.Answer       // of verbatim, where its head has to be read
	head       []byte
	target     []byte
	told       []byte // the header lines that tell the backend who asks
	pinned     []byte // the ETag that the write depends on
	version    []byte // of the stored object, as its resourceVersion
	edited     []byte
	limitLines []byte // of the answer's head, which tell what is left of rate limits
}

// progress is what the steps learn of a request. What points into the client's bytes is valid until the handler
// returns, and not longer.
type progress struct {
	gateway *Gateway
	ctx     *fasthttp.RequestCtx
	conn    *conn
	started time.Time

	// set is the snapshot of policies that every step of this request uses.
	set      *policies.Set
	upstream *backend
	info     resource.Info
	res      *resource.Resource // nil where no policy file describes it
	user     identity.User
	client   netip.Addr
	asking   identity.Request // what the request says of who asks
	// withheld are the fields of the client that tell who asks, where the gateway tells it itself, in the lines of told.
	withheld  wire.FieldSet
	challenge string // what a client that is not known has to show

	body []byte             // as the client sent it
	doc  *document.Document // of the body, edits laid over it
	old  *document.Document // the stored object, where something needed it
	// patch is the client's, where only the backend can tell what results from it.
	patch *document.Document
	// result is what the server would store, where policies judge that.
	result *document.Document
	// collection is what is stored of a collection that is deleted object by object.
	collection *document.Document

	attributes admission.Attributes
	patchType  patchType
	language   language      // of the body
	transcoded bool          // the body is JSON that was made of what the client sent
	sent       []byte        // what was sent to the backend
	locked     chan struct{} // held while another writer may not come between
	pin        pin           // what the write depends on
	readsOld   bool          // oldAnswer was used
	readsBack  bool          // oldAnswer has what was written
	asked      bool          // dryAnswer was used
	filledOld  bool          // what is stored lacks some of the defaults
	creates    bool          // a PUT of a name that nothing is stored under
	rebuilt    bool          // doc is another document than the client's
	versioned  bool          // the gateway wrote the resourceVersion that it read into the object
	named      bool          // the client named that version in the object
	generated  bool          // the gateway made the name
	settled    bool          // there is nothing to store
	scaling    bool          // a write to the scale subresource, which became one to the object
	lasting    int           // how many of the warnings are not of this attempt
	retryAfter int           // seconds, where a rate limit refuses
	limited    cel.Request   // what the expressions of rate limits see, where there are any

	matching  *listPass             // which objects of a collection are deleted
	listing   *listPass             // what of a collection is asked for
	options   *metav1.DeleteOptions // of a deletion
	marking   bool                  // a DELETE became the update that says in the object that it is being deleted
	finishing bool                  // an update became the deletion of the object

	misplaced *field.Error    // what stands where the status has to
	underived field.ErrorList // fields whose default cannot be computed

	oldScale, newScale *scaleObject // where the scale subresource is written

	protocol []byte           // that the request asks to go on in, where that is allowed
	tunnel   *upstream.Tunnel // to the backend, where it agreed
	left     bool             // the answer goes on without the exchange

	filling   *filling // completes an answer that is streamed
	forwarded wire.Forward
	extra     [3]wire.Header
	call      upstream.Request
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// handle serves one request of a connection.
func (g *Gateway) handle(ctx *fasthttp.RequestCtx, c *conn) {
	x := exchanges.Get().(*exchange)
	x.gateway, x.ctx, x.conn, x.started, x.set = g, ctx, c, time.Now(), g.policies()
	g.metrics.RequestStarted()
	if l := x.respond(); l != nil {
		l.send()
	}
}

// respond serves the request, up to an answer that may go on for hours.
func (x *exchange) respond() (l *lasting) {
	defer x.finish()
	ctx, c := x.ctx, x.conn
	if err := x.serve(); err != nil {
		x.refuse(err)
		return nil
	}
	x.tellLimits()
	x.landIfLasting()
	switch {
	case x.outlasts():
		return x.leave()
	case x.verbatim.Status != 0:
		c.sendVerbatim(&x.verbatim)
	case ctx.Response.IsBodyStream():
		// How a stream ends shows on the connection; the answer's code is sent already.
		if _, err := c.sendStream(ctx, x.endless(), x.filling); err != nil && !c.answered {
			x.refuse(err)
		}
	default:
		c.sendAnswer(ctx) // for as long as that takes the request is served
	}
	return nil
}

// finish counts the request and gives its memory back, also after a panic, which the server answers.
func (x *exchange) finish() {
	x.land()
	if !x.left {
		x.gateway.measure(x.answered(), x.started)
	}
	x.release()
}

// release puts the exchange back, without anything of the request.
func (x *exchange) release() {
	x.releaseDocuments()
	if x.filling != nil {
		x.filling.release()
	}
	if x.attributes.Frame != nil {
		x.attributes.Frame.Release()
	}
	if x.readsOld {
		x.oldAnswer.Reset()
	}
	if x.asked {
		x.dryAnswer.Reset()
	}
	x.verbatim.Reset(maxKept)
	x.report.Reset()
	x.referred.Reset()
	x.charges.Reset()
	clear(x.warnings)
	x.warnings = x.warnings[:0]
	x.head, x.target, x.edited, x.told = keep(x.head), keep(x.target), keep(x.edited), keep(x.told)
	x.limitLines = keep(x.limitLines)
	x.pinned, x.version = keep(x.pinned), keep(x.version)
	x.progress = progress{}
	exchanges.Put(x)
}

// maxKept is the size up to which the buffers of an exchange are kept for the next one, in bytes.
const maxKept = 64 << 10

func keep(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}

func (x *exchange) releaseDocuments() {
	if x.doc != nil {
		x.doc.Release()
		x.doc = nil
	}
	if x.old != nil {
		x.old.Release()
		x.old = nil
	}
	if x.patch != nil {
		x.patch.Release()
		x.patch = nil
	}
	if x.result != nil {
		x.result.Release()
		x.result = nil
	}
	if x.collection != nil {
		x.collection.Release()
		x.collection = nil
	}
}

// resetAttempt forgets what an attempt at a write made of the body.
func (x *exchange) resetAttempt() {
	x.releaseDocuments()
	x.report.Reset()
	x.warnings = x.warnings[:x.lasting]
	x.pin, x.version = pinNone, x.version[:0]
	x.misplaced, x.underived = nil, nil
	x.creates, x.rebuilt, x.versioned, x.filledOld, x.marking, x.finishing = false, false, false, false, false, false
	if x.generated {
		x.generated, x.info.Name = false, ""
	}
	if x.scaling {
		x.scaling, x.info.Subresource = false, scaleSubresource
		path, _, _ := strings.Cut(str(x.conn.head.Target), "?")
		x.info.Path = path
	}
}

func (x *exchange) isHead() bool { return x.conn.headOnly }

// code is the status code of the answer.
func (x *exchange) code() int {
	if x.verbatim.Status != 0 {
		return x.verbatim.Status
	}
	return x.ctx.Response.StatusCode()
}

// str is the string of bytes of the client's head, which live as long as the exchange.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
