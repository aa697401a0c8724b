// Package report shows numbers to people and to machines: tables as text, JSON, CSV
// and parts of pages, charts and figures in SVG, and a progress line.
//
// What machines read has raw units (joules, seconds, fractions) under keys that
// end in the unit, in a fixed order, and is written record by record. What
// people read has one unit per column, chosen for the values in it, and never
// lets text of the input act on the terminal.
package report
