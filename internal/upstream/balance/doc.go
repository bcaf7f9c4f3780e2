// Package balance decides which server of a backend is asked next, and which ones are passed over. It does no input or
// output and has no clock: its caller makes the connections, says what time it is, and guards a [Set] by a lock.
//
//   - Of two endpoints that are drawn at random the less busy one is chosen ("the power of two choices").
//   - An endpoint that fails several times in a row is ejected for a while; each further time is longer.
//   - An endpoint that fails its health checks is passed over until it passes them.
//   - An endpoint that comes back starts slowly, if that is asked for: its share grows from a tenth to a full one.
//   - If no endpoint is left, all are asked: it is more likely that they are passed over wrongly than that all are
//     down.
//   - A circuit breaker refuses requests if no endpoint answers.
//   - A budget bounds the requests that are sent a second time.
package balance
