//go:build !purego

#include "textflag.h"

// func maskAVX2(masks *uint64, text *byte, blocks int)
//
// Each byte of Y0 is 2, of Y1 0x21, of Y2 the backslash. XOR with 2 takes the quotation mark to 0x20,
// and leaves control characters below it. The comparison with 0x21 takes bytes for signed numbers, so
// that those beyond ASCII are less, too.
TEXT ·maskAVX2(SB), NOSPLIT, $0-24
	MOVQ masks+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ blocks+16(FP), CX

	MOVL $0x02, AX
	MOVQ AX, X0
	VPBROADCASTB X0, Y0
	MOVL $0x21, AX
	MOVQ AX, X1
	VPBROADCASTB X1, Y1
	MOVL $0x5c, AX
	MOVQ AX, X2
	VPBROADCASTB X2, Y2

block:
	VPXOR    (SI), Y0, Y3
	VPCMPGTB Y3, Y1, Y3
	VPCMPEQB (SI), Y2, Y4
	VPOR     Y3, Y4, Y3
	VPMOVMSKB Y3, AX

	VPXOR    32(SI), Y0, Y5
	VPCMPGTB Y5, Y1, Y5
	VPCMPEQB 32(SI), Y2, Y6
	VPOR     Y5, Y6, Y5
	VPMOVMSKB Y5, BX

	SHLQ $32, BX
	ORQ  AX, BX
	MOVQ BX, (DI)

	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  block

	VZEROUPPER
	RET
