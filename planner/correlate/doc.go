// Package correlate computes Pearson's correlation coefficient of two utilisation
// series ([Pearson]).
//
// What it does where series aren't plain:
//
//   - Series of unequal lengths are cut to the shorter one (CATS eq. 15).
//   - A value that is NaN or infinite is a gap. A sample with a gap on either
//     side is left out for that pair only (pairwise deletion) and counted in
//     [Result.Gaps].
//   - The coefficient is undefined ([Result.OK] false) where fewer than two
//     samples are left, where a side doesn't vary in what is left, and where
//     squares of deviations leave the range of a float64 (deviations beyond
//     about 1e150, or all of them within 1e-150). [Result.OrZero] takes it for
//     0 there, as CATS has to for GPUs that nothing runs on.
//
// Deviations are taken from means of blocks, and blocks are merged by the
// formulas of Chan, Golub and LeVeque (1983), so that an offset of 1e9 costs no
// digits of the result beyond those that it costs the samples.
package correlate
