// Package probe learns from embeddings of source code what jobs take: a linear probe
// (ridge regression) and a small neural network (MLP), both on logarithms and with
// conformal intervals, and how far a job is from anything that was learnt from. Pure.
package probe
