package octets

// A Structure has masks of the bytes of a block of 64 that the structure of JSON consists of. Those
// within strings are among them.
type Structure struct {
	Quotes, Backslashes uint64
	Opens, Closes       uint64 // brackets and braces
}

// Structures writes the Structure of each block of the text. There must be one for each 64 bytes and
// one for the rest of it. Bits behind the end of the text are not set.
func Structures(blocks []Structure, text []byte) {
	whole := len(text) / MaskBytes
	if whole > 0 {
		structureBlocks(blocks[:whole], text)
	}
	if rest := text[whole*MaskBytes:]; len(rest) > 0 {
		var last [MaskBytes]byte
		copy(last[:], rest)
		structureBlocks(blocks[whole:whole+1], last[:])
	}
}

// structureWords is structureBlocks for any processor.
func structureWords(blocks []Structure, text []byte) {
	for i := range blocks {
		var b Structure
		block := text[i*MaskBytes : (i+1)*MaskBytes]
		for at := 0; at < MaskBytes; at += 8 {
			word := Word(block[at:])
			small := word | ' '*Ones // which makes braces of brackets
			b.Quotes |= gather(equal(word, '"')) << at
			b.Backslashes |= gather(equal(word, '\\')) << at
			b.Opens |= gather(equal(small, '{')) << at
			b.Closes |= gather(equal(small, '}')) << at
		}
		blocks[i] = b
	}
}

// equal sets the highest bit of each byte that is c, and no other bit.
func equal(word uint64, c byte) uint64 {
	const low = ^uint64(Highs)
	word ^= uint64(c) * Ones
	return ^(word&low + low | word) & Highs
}
