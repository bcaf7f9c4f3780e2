//go:build !amd64 || purego

package octets

// structureBlocks writes the Structure of each 64 bytes of the text, which must have as many.
func structureBlocks(blocks []Structure, text []byte) { structureWords(blocks, text) }
