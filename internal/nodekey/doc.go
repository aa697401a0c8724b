// Package nodekey proves who sends a request where there is no munge: each machine has an
// Ed25519 key of its own in a file that only its epd can read, and a list of the public keys of those
// whom it believes. A controller believes nodes, an agent controllers. What is signed, and how an
// answer is bound to its request, is package munge's affair: [Keys] are one more [munge.Voucher].
//
// A key says which node it belongs to, so that a node can speak for itself alone. A key that is no
// longer in the list is believed no more from the next request on.
package nodekey
