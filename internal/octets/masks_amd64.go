//go:build !purego

package octets

import "golang.org/x/sys/cpu"

// maskBlocks writes a mask for each 64 bytes of the text, which must have as many.
func maskBlocks(masks []uint64, text []byte) {
	if !cpu.X86.HasAVX2 { // such as amd64 processors before 2013
		maskWords(masks, text)
		return
	}
	_ = text[len(masks)*MaskBytes-1]
	maskAVX2(&masks[0], &text[0], len(masks))
}

// maskAVX2 is maskWords for at least one block, 32 bytes at a time.
//
//go:noescape
func maskAVX2(masks *uint64, text *byte, blocks int)
