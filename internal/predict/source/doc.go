// Package source turns the source code of a job into numbers: the words it is made
// of, the numbers that its names are given, and of both an embedding by feature
// hashing that needs no server, no dictionary and no training.
//
// A name's number counts by its logarithm, so that a linear probe on embeddings can
// find that a job of twice the epochs takes twice the time. Names are compared
// without case, separators and counting prefixes: NUM_EPOCHS, --epochs and epochs
// are one. Pure.
package source
