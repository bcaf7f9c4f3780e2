package testutil

import "regexp"

var madeID = regexp.MustCompile(`(?m)^X-Request-Id: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\r?\n`)

// WithoutMadeIDs returns the text of messages without the ids that a gateway has made up for requests.
func WithoutMadeIDs(messages string) string { return madeID.ReplaceAllString(messages, "") }
