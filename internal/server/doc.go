// Package server serves the connections of clients: it reads requests, calls a handler for each,
// and sends the answers.
//
// # fasthttp
//
// fasthttp serves the admin listener (internal/admin): its Server accepts the connections, reads
// requests, bounds workers, buffers and times, and shuts down; the pages read and fill its
// RequestCtx, with its Request and Response; fasthttpadaptor serves the metrics, whose handler is
// one of net/http. Those requests are not read a second time, so a lenient reader does no harm.
//
// Clients' requests are another matter. fasthttp.Server cannot serve a connection unless it reads
// the heads too. It joins folded lines, takes Content-Length beside Transfer-Encoding and promotes
// trailers. The server behind the gateway may read the same bytes in another way, and one request
// would become two. So [message.Head], which refuses such heads, is the only reader of requests. What
// is left of a server is small: a loop that accepts, a goroutine for each connection, and a
// shutdown.
//
// The answers to clients have one form, [message.Response], whose head is the bytes that the backend
// sent. A fasthttp.Response would copy them to fields of its own and write them in its own order,
// and its ResponseHeader adds a Date to each answer that has none.
//
// What the gateway itself asks of backends (proxy/backends.go) goes by internal/upstream, as
// clients' requests do. A fasthttp.HostClient or LBClient would have connections, health and a
// choice of endpoints of its own, beside the endpoints that are ejected, checked and resolved anew
// for requests, and its own copy of their TLS. It bounds the size of an answer only if it holds it
// as a whole, and has nothing that ends a read of a watch under way. A service account
// (internal/credentials) sends no requests. The keys of issuers of JWTs (internal/identity) are
// asked for by an http.Client: the library that verifies tokens takes no other.
//
// # Exchanges
//
// A handler gets a [Request]: what the client says, and the [Exchange] by which its body is read
// and it is answered. Nothing of the protocol is in either, so that a protocol with many exchanges
// on a connection is one more implementation.
//
// # Connections
//
// A connection of HTTP/1.1 carries one exchange at a time. It holds a buffer only while it needs
// one: not while it is idle, and not while a stream is silent. An exchange is made anew for each
// request, so that none inherits anything.
package server
