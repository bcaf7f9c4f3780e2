//go:build !purego

package octets

import "golang.org/x/sys/cpu"

// structureBlocks writes the Structure of each 64 bytes of the text, which must have as many.
func structureBlocks(blocks []Structure, text []byte) {
	if !cpu.X86.HasAVX2 {
		structureWords(blocks, text)
		return
	}
	_ = text[len(blocks)*MaskBytes-1]
	structureAVX2(&blocks[0], &text[0], len(blocks))
}

// structureAVX2 is structureWords for at least one block, 32 bytes at a time.
//
//go:noescape
func structureAVX2(blocks *Structure, text *byte, count int)
