// Package plan runs checked expressions: as closures over the document's tape,
// which [Compile] makes, and for what these do not cover by cel-go's interpreter,
// with steps around it that count as the closures do (see [Meter]).
//
// A [Machine] holds what both use while they run. A value travels as a [Val], which
// costs no memory for strings, numbers and places in a document.
package plan
