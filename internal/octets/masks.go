package octets

// MaskBytes is how many bytes a mask has a bit for, the lowest bit for the first byte.
const MaskBytes = 64

// Masks writes masks of what may not pass unseen in a JSON string: quotation marks, backslashes,
// control characters and bytes beyond ASCII. There must be a mask for each 64 bytes of the text and
// one for the rest of it. Bits behind the end of the text are not set.
func Masks(masks []uint64, text []byte) {
	whole := len(text) / MaskBytes
	if whole > 0 {
		maskBlocks(masks[:whole], text)
	}
	if rest := text[whole*MaskBytes:]; len(rest) > 0 {
		var last [MaskBytes]byte
		copy(last[:], rest)
		maskBlocks(masks[whole:whole+1], last[:])
		masks[whole] &= 1<<len(rest) - 1
	}
}

// maskWords is maskBlocks for any processor.
func maskWords(masks []uint64, text []byte) {
	for i := range masks {
		mask, block := uint64(0), text[i*MaskBytes:(i+1)*MaskBytes]
		for at := 0; at < MaskBytes; at += 8 {
			mask |= gather(special(Word(block[at:]))) << at
		}
		masks[i] = mask
	}
}

// special finds every byte that Masks marks, and no other: no bit is carried from byte to byte.
func special(x uint64) uint64 {
	const low = ^uint64(Highs)
	// XOR with 2 takes the quotation mark to 0x20, and leaves control characters below it.
	above := (x^0x02*Ones)&low + (0x80-0x21)*Ones
	other := (x^'\\'*Ones)&low + low
	return (^(above & other) | x) & Highs
}

// gather moves the highest bits of eight bytes next to each other.
func gather(found uint64) uint64 { return found >> 7 * 0x0102040810204080 >> 56 }
