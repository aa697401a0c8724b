// Package gpureport lists GPU models: what is known of their clocks, power and controls, and
// what of it is an estimate, for people and as JSON.
package gpureport
