package agent

import "time"

// SettleOneByOne makes the order of an agent's steps certain.
func (a *Agent) SettleOneByOne() { a.atOnce = 1 }

// AtRisk is the guard's rule.
func AtRisk(run *Run, elapsed, margin time.Duration) string { return atRisk(run, elapsed, margin) }

// DecodeEntry reads a journal's file.
func DecodeEntry(uuid string, data []byte) (*Entry, error) { return decodeEntry(uuid, data) }

// MaxPoints is the longest series.
const MaxPoints = maxPoints
