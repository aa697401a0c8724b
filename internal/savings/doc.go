// Package savings estimates what runs at chosen clocks used less than they would
// have at default ones, from runs that a lot held out. It is pure.
package savings
