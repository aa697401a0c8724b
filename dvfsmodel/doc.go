// Package dvfsmodel is the analytical model of how a GPU job's run time and
// power respond to voltage and clocks (dynamic voltage and frequency scaling),
// and of the settings that are best for one job on its own.
//
// The model is that of the EDL paper (arXiv:2104.00486), eq. (1)–(3):
//
//	P(V, fc, fm) = P0 + γ·fm + c·V²·fc      watts
//	t(fc, fm)    = t0 + D·(δ/fc + (1−δ)/fm)  seconds
//	E            = P·t                       joules
//
// with the core clock fc, the memory clock fm and the core voltage V
// normalised: (1, 1, 1) is the GPU's default. Normalised clocks exist in this
// package only; outside it a setting is known by its MHz. The core voltage
// bounds the core clock, fc ≤ g1(V), so the cheapest voltage for a clock lies
// on the V(f) curve ([VoltageFor]).
//
// Clocks are chosen either in a continuous [Range] (what the paper does) or
// from a [Table] of clocks that a GPU supports (what hardware offers). A time
// limit that no clock can meet is an answer, not a NaN: [InfeasibleError]
// carries the shortest possible time.
//
// The package is pure: no clocks, no files, no global random numbers.
package dvfsmodel
