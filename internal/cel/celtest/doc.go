// Package celtest holds what tests of expressions share: objects, generated and
// recorded, and expressions made of bytes.
package celtest
