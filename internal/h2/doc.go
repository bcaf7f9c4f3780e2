// Package h2 is what HTTP/2 (RFC 9113) adds to a message: heads as blocks of HPACK fields, windows of
// flow control, and a bound on frames that carry nothing. It neither reads from nor writes to
// connections.
//
// There is one strict reader of heads, [message.Head.Parse] and [message.Answer.Parse], and it reads
// the text of HTTP/1.1. So a block becomes that text first. Only what RFC 9113 forbids by itself, and
// what could not stand in the text in one way, is refused here.
//
// The frames and the decoder of HPACK are those of golang.org/x/net/http2.
package h2
