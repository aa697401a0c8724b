package share

import "github.com/epplan/epplan/planner/sharing"

// Problem says what counts as slowing a task down.
type Problem uint8

// AsPrinted is the paper's problem: frequency alone slows tasks down. Safe
// counts contention too.
const (
	Safe Problem = iota
	AsPrinted
)

// String returns the problem's name on the command line.
func (p Problem) String() string {
	if p == AsPrinted {
		return "as-printed"
	}
	return "safe"
}

// CurveOf returns the curve that counts in a problem; nil where load alone does.
func CurveOf(in *sharing.Instance, problem Problem) *sharing.Curve {
	if problem != Safe || in.Contention == nil || *in.Contention == sharing.LinearCurve() {
		return nil
	}
	return in.Contention
}
