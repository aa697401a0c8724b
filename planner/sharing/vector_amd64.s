#include "textflag.h"

// func sumsAVX(x, y []float64) (sumX, sumY float64)
TEXT ·sumsAVX(SB), NOSPLIT, $0-64
	MOVQ   x_base+0(FP), SI
	MOVQ   x_len+8(FP), CX
	MOVQ   y_base+24(FP), DI
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3

sum:
	VADDPD (SI), Y0, Y0
	VADDPD (DI), Y1, Y1
	VADDPD 32(SI), Y2, Y2
	VADDPD 32(DI), Y3, Y3
	ADDQ   $64, SI
	ADDQ   $64, DI
	SUBQ   $8, CX
	JNE    sum

	VADDPD       Y2, Y0, Y0
	VADDPD       Y3, Y1, Y1
	VEXTRACTF128 $1, Y0, X2
	VEXTRACTF128 $1, Y1, X3
	VADDPD       X2, X0, X0
	VADDPD       X3, X1, X1
	VHADDPD      X0, X0, X0
	VHADDPD      X1, X1, X1
	VMOVSD       X0, sumX+48(FP)
	VMOVSD       X1, sumY+56(FP)
	VZEROUPPER
	RET

// func deviationsAVX(x, y []float64, centreX, centreY float64) (sumX, sumY, xx, yy, xy float64)
TEXT ·deviationsAVX(SB), NOSPLIT, $0-104
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	MOVQ         y_base+24(FP), DI
	VBROADCASTSD centreX+48(FP), Y14
	VBROADCASTSD centreY+56(FP), Y15
	VXORPD       Y0, Y0, Y0
	VXORPD       Y1, Y1, Y1
	VXORPD       Y2, Y2, Y2
	VXORPD       Y3, Y3, Y3
	VXORPD       Y4, Y4, Y4
	VXORPD       Y5, Y5, Y5
	VXORPD       Y10, Y10, Y10
	VXORPD       Y11, Y11, Y11
	VXORPD       Y12, Y12, Y12
	VXORPD       Y13, Y13, Y13

square:
	VMOVUPD     (SI), Y6
	VMOVUPD     (DI), Y7
	VMOVUPD     32(SI), Y8
	VMOVUPD     32(DI), Y9
	PREFETCHT0  4096(SI)         // the same samples of the next block
	PREFETCHT0  4096(DI)
	VSUBPD      Y14, Y6, Y6
	VSUBPD      Y15, Y7, Y7
	VSUBPD      Y14, Y8, Y8
	VSUBPD      Y15, Y9, Y9
	VFMADD231PD Y6, Y6, Y0
	VFMADD231PD Y7, Y7, Y1
	VFMADD231PD Y6, Y7, Y2
	VFMADD231PD Y8, Y8, Y3
	VFMADD231PD Y9, Y9, Y4
	VFMADD231PD Y8, Y9, Y5
	VADDPD      Y6, Y10, Y10
	VADDPD      Y7, Y11, Y11
	VADDPD      Y8, Y12, Y12
	VADDPD      Y9, Y13, Y13
	ADDQ        $64, SI
	ADDQ        $64, DI
	SUBQ        $8, CX
	JNE         square

	VADDPD       Y3, Y0, Y0
	VADDPD       Y4, Y1, Y1
	VADDPD       Y5, Y2, Y2
	VADDPD       Y12, Y10, Y10
	VADDPD       Y13, Y11, Y11
	VEXTRACTF128 $1, Y0, X3
	VEXTRACTF128 $1, Y1, X4
	VEXTRACTF128 $1, Y2, X5
	VEXTRACTF128 $1, Y10, X6
	VEXTRACTF128 $1, Y11, X7
	VADDPD       X3, X0, X0
	VADDPD       X4, X1, X1
	VADDPD       X5, X2, X2
	VADDPD       X6, X10, X10
	VADDPD       X7, X11, X11
	VHADDPD      X0, X0, X0
	VHADDPD      X1, X1, X1
	VHADDPD      X2, X2, X2
	VHADDPD      X10, X10, X10
	VHADDPD      X11, X11, X11
	VMOVSD       X10, sumX+64(FP)
	VMOVSD       X11, sumY+72(FP)
	VMOVSD       X0, xx+80(FP)
	VMOVSD       X1, yy+88(FP)
	VMOVSD       X2, xy+96(FP)
	VZEROUPPER
	RET
