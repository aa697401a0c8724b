// Package savings estimates what runs at chosen clocks used less than they would
// have at default ones, from runs that a lot held out. Any two arms of one lot can be
// compared so: the runs at constant clocks with those held out, and with the treated
// ones what choosing clocks for each job adds. It is pure.
package savings
