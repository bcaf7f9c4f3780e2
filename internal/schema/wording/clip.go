package wording

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/quote"
)

// Clip copies a string of a document, shortened to what a message may repeat.
func Clip(s string) string { return strings.Clone(quote.Clip(s, quote.MaxValue)) }
