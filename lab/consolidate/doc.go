// Package consolidate solves the one-shot problem of the CATS paper (Subramaniyan and Wang, ICS '26), as
// printed there and as it has to be corrected: which tasks share which GPUs, at which clocks, and which GPUs
// and servers sleep. [Exact] proves the least power by branch and price, [QuickBound] bounds it, [Improve]
// searches. Rules that place one task at a time, and the judge of placements, are in package planner/share.
package consolidate
