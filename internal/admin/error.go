package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/status"
)

// writeError answers with an error as a Status.
func writeError(ctx *fasthttp.RequestCtx, err *status.Error) {
	ctx.SetContentType("application/json")
	ctx.SetStatusCode(int(err.ErrStatus.Code))
	ctx.SetBody(append(status.AppendJSON(nil, &err.ErrStatus), '\n'))
}

// refuse answers what could not be read as a request. The connection ends with it.
func refuse(ctx *fasthttp.RequestCtx, err error) {
	var large *fasthttp.ErrSmallBuffer
	var late net.Error
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain) && plain.Conn != nil:
		// The connection cannot be written by TLS, which this client does not speak.
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nthe client sent an HTTP request to an HTTPS server\n")
	case errors.As(err, &large):
		writeError(ctx, status.Coded(http.StatusRequestHeaderFieldsTooLarge,
			fmt.Sprintf("the head of a request to the admin listener may have %d bytes", maxHeadBytes)))
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		writeError(ctx, status.Coded(http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"the body of a request to the admin listener may have %d bytes, and a question to the playground %d", maxBodyBytes, maxQuestionBytes)))
	case errors.As(err, &late) && late.Timeout():
		writeError(ctx, status.Coded(http.StatusRequestTimeout,
			fmt.Sprintf("the request did not arrive within %d seconds", int(readTimeout.Seconds()))))
	default:
		writeError(ctx, status.Coded(http.StatusBadRequest, "the admin listener cannot read the request"))
	}
}

// errorLog writes what fasthttp reports of connections to the log.
type errorLog struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l errorLog) Printf(format string, args ...any) { l.log.Warn(fmt.Sprintf(format, args...)) }
