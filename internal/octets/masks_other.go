//go:build !amd64 || purego

package octets

// maskBlocks writes a mask for each 64 bytes of the text, which must have as many.
func maskBlocks(masks []uint64, text []byte) { maskWords(masks, text) }
