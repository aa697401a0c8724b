// Package report turns results into text for people and for machines: plans
// and comparisons as tables, JSON and CSV, as SVG pictures, as reports in HTML
// made of the parts of package page, and a progress line.
//
// What machines read has raw units (joules, seconds, fractions) under keys that
// end in the unit, in a fixed order, and is written record by record. What
// people read has one unit per column, chosen for the values in it, and never
// lets text of the input act on the terminal.
package report
