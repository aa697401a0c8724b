// Package budget divides a budget of watts among the GPUs of a cluster, as leases that the
// drivers' power limits keep.
//
// A [Schedule] says how many watts there are at a time. [Divide] says which limit each GPU is
// to have, so that what runs is slowed the least. A [Ledger] brings the limits there without
// exceeding the budget on the way: it knows the highest limit that each GPU may have, whatever
// message was lost and whichever agent died, and grants more only once another GPU was seen
// with less. What a GPU draws is no part of that: a limit is a promise of the driver.
//
// It is pure: it knows no time, cluster or agent but what it is told of.
package budget
