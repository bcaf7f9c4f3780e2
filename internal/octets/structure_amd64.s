//go:build !purego

#include "textflag.h"

// func structureAVX2(blocks *Structure, text *byte, count int)
//
// Each byte of Y0 is the quotation mark, of Y1 the backslash, of Y2 the bit that makes braces of
// brackets, of Y3 and Y4 the two braces.
TEXT ·structureAVX2(SB), NOSPLIT, $0-24
	MOVQ blocks+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ count+16(FP), CX

	MOVL $0x22, AX
	MOVQ AX, X0
	VPBROADCASTB X0, Y0
	MOVL $0x5c, AX
	MOVQ AX, X1
	VPBROADCASTB X1, Y1
	MOVL $0x20, AX
	MOVQ AX, X2
	VPBROADCASTB X2, Y2
	MOVL $0x7b, AX
	MOVQ AX, X3
	VPBROADCASTB X3, Y3
	MOVL $0x7d, AX
	MOVQ AX, X4
	VPBROADCASTB X4, Y4

block:
	VMOVDQU (SI), Y5
	VMOVDQU 32(SI), Y6

	VPCMPEQB  Y5, Y0, Y7
	VPMOVMSKB Y7, AX
	VPCMPEQB  Y6, Y0, Y8
	VPMOVMSKB Y8, BX
	SHLQ $32, BX
	ORQ  AX, BX
	MOVQ BX, (DI)

	VPCMPEQB  Y5, Y1, Y7
	VPMOVMSKB Y7, AX
	VPCMPEQB  Y6, Y1, Y8
	VPMOVMSKB Y8, BX
	SHLQ $32, BX
	ORQ  AX, BX
	MOVQ BX, 8(DI)

	VPOR Y5, Y2, Y5
	VPOR Y6, Y2, Y6

	VPCMPEQB  Y5, Y3, Y7
	VPMOVMSKB Y7, AX
	VPCMPEQB  Y6, Y3, Y8
	VPMOVMSKB Y8, BX
	SHLQ $32, BX
	ORQ  AX, BX
	MOVQ BX, 16(DI)

	VPCMPEQB  Y5, Y4, Y7
	VPMOVMSKB Y7, AX
	VPCMPEQB  Y6, Y4, Y8
	VPMOVMSKB Y8, BX
	SHLQ $32, BX
	ORQ  AX, BX
	MOVQ BX, 24(DI)

	ADDQ $64, SI
	ADDQ $32, DI
	DECQ CX
	JNZ  block

	VZEROUPPER
	RET
