package planner

import (
	"fmt"
	"math"
)

// Reason says why a task got its clocks and its place, as data; String is the
// sentence that explain prints.
type Reason struct {
	Clocks ClockReason
	Place  PlaceReason
	Bound  TimeBound // what asks for faster clocks, or can't be met
	// Of the bound, which is kept: a deadline's in seconds, a limit's as a part of what
	// is left.
	Margin     float32
	Want       float64 // run time at the task's own optimum, seconds
	TimeBudget float64 // time that was available, seconds
	Prior      bool    // it has no model: others on the GPU model say how it responds
}

// TimeBound is what bounds a task's run time.
type TimeBound uint8

// What bounds a run time.
const (
	BoundDeadline TimeBound = iota
	BoundDue                // the due time of a task without deadline
	BoundLimit              // the run-time limit
)

// bound returns what bounds a task's run time if it starts then, and the margin that
// [Task.Due] or [Task.Limit] keeps from it.
func (t *Task) bound(start float64) (by TimeBound, margin float32) {
	switch {
	case t.Limit < t.Due-start:
		return BoundLimit, float32(t.LimitMargin)
	case math.IsInf(t.Deadline, 1):
		return BoundDue, 0
	}
	return BoundDeadline, float32(t.Deadline - t.Due)
}

// ClockReason is why a task runs at its clocks.
type ClockReason uint8

// Why clocks are as they are.
const (
	ClocksDefault   ClockReason = iota // the policy leaves clocks alone
	ClocksNoModel                      // nothing is known of how the job responds
	ClocksShared                       // part of a GPU: clocks belong to all who share it
	ClocksFree                         // least energy, no limit in the way
	ClocksDeadline                     // faster than the optimum: the bound demands it
	ClocksReadjust                     // θ-readjustment: shortened to use a running node
	ClocksStretched                    // Improve: lengthened into its node's idle time
	ClocksShrunk                       // Improve: shortened so that its node ends earlier
	ClocksLate                         // as fast as possible: the bound is lost
	ClocksAdapted                      // those of a GPU that is shared, set for all who are on it
	ClocksPaced                        // faster than the optimum, to keep pace with default clocks
	ClocksConstant                     // one clock pair for all tasks on the GPU model
	ClocksBudget                       // others than without a power budget
)

// PlaceReason is why a task runs where it does.
type PlaceReason uint8

// Why a place was chosen.
const (
	PlaceOpened   PlaceReason = iota // a GPU that nothing used before: no running one fits
	PlaceLightest                    // the GPU that is free first
	PlaceFirst                       // the first GPU in opening order that fits
	PlaceFullest                     // the fullest GPU that fits
	PlaceEmptiest                    // the emptiest GPU that fits
	PlaceLatest                      // the GPU that is free last and still fits
	PlaceMarginal                    // least added energy over all places
	PlaceMoved                       // moved by Improve
	PlaceLate                        // nothing fits: the earliest finish
	PlaceForced                      // no GPU has the room it wants: the cheapest that meets the due time
	PlaceHeld                        // held back until a GPU came free
	PlaceSoonest                     // the earliest start
	PlaceScored                      // the node with the best score among those with room
	PlaceTogether                    // nodes that are free together, for a task on several
	PlaceRuns                        // it runs there at the present
	PlaceBeside                      // beside others on a GPU that is shared
	PlacePlanned                     // where the plan of all that waits has it
	PlaceBudget                      // where and when a power budget has room for it
	PlacePrice                       // later than it could start: when energy is cheaper or cleaner
)

// String returns the reason as a sentence without a full stop.
func (r Reason) String() string {
	text := r.clockText()
	if r.Prior {
		text += "; no model: as long as 19 of 20 workloads on the GPU model would take"
	}
	place := PlaceOpened
	if int(r.Place) < len(placeTexts) {
		place = r.Place
	}
	return text + "; " + placeTexts[place]
}

func (r Reason) clockText() string {
	switch r.Clocks {
	case ClocksNoModel:
		return "no model: default clocks, given run time"
	case ClocksShared:
		return "shares a GPU: default clocks"
	case ClocksFree:
		return "free optimum" + r.slackText()
	case ClocksDeadline:
		return fmt.Sprintf("%s: %.6g s allowed%s the optimum takes %.6g s", r.boundText(), r.TimeBudget,
			r.marginText(), r.Want)
	case ClocksReadjust:
		return fmt.Sprintf("readjusted: shortened from %.6g s to the %.6g s left on its GPU", r.Want,
			r.TimeBudget)
	case ClocksStretched:
		return fmt.Sprintf("stretched from %.6g s to %.6g s into its node's idle time", r.Want, r.TimeBudget)
	case ClocksShrunk:
		return fmt.Sprintf("shortened from %.6g s to %.6g s so that its node ends earlier", r.Want,
			r.TimeBudget)
	case ClocksAdapted:
		return fmt.Sprintf("clocks of a GPU that may be shared, set for all who are on it; alone it "+
			"takes %.6g s", r.Want)
	case ClocksPaced:
		return fmt.Sprintf("faster than the optimum, which takes %.6g s, to keep pace with default clocks",
			r.Want)
	case ClocksConstant:
		return "the clocks of all jobs on its GPU model"
	case ClocksBudget:
		return fmt.Sprintf("within the power budget: %.6g s, without it %.6g s", r.TimeBudget, r.Want)
	case ClocksLate:
		return "fastest clocks: the " + r.missedText() + " can't be met here"
	default:
		return "default clocks"
	}
}

// boundText says what asks for faster clocks.
func (r Reason) boundText() string {
	switch r.Bound {
	case BoundDue:
		return "bound by its due time"
	case BoundLimit:
		return "limit-bound"
	default:
		return "deadline-bound"
	}
}

// marginText returns the margin within what is allowed.
func (r Reason) marginText() string {
	const percent = 100
	switch margin := float64(r.Margin); {
	case margin == 0:
		return ","
	case r.Bound == BoundLimit:
		return fmt.Sprintf(", its limit of %.6g s less the margin of %.4g %%;", r.TimeBudget*(1+margin),
			margin*percent)
	default:
		return fmt.Sprintf(", %.6g s of margin kept;", margin)
	}
}

func (r Reason) missedText() string {
	switch {
	case r.Bound == BoundDue:
		return "due time"
	case r.Bound == BoundLimit:
		return "limit"
	case r.Margin == 0:
		return "deadline"
	}
	return fmt.Sprintf("deadline less its margin of %.6g s", r.Margin)
}

// slackText says how much time is left over; empty where there is no limit, or none is left.
func (r Reason) slackText() string {
	if r.TimeBudget <= r.Want || math.IsInf(r.TimeBudget, 1) || math.IsNaN(r.TimeBudget) {
		return ""
	}
	const minute, hour = 60, 3600
	spare := r.TimeBudget - r.Want
	if spare < minute {
		return fmt.Sprintf(", %.6g s to spare", spare)
	}
	return fmt.Sprintf(", %.0f:%02d:%02d to spare", math.Floor(spare/hour), int(math.Mod(spare, hour))/minute,
		int(math.Mod(spare, minute)))
}

var placeTexts = [...]string{
	PlaceOpened:   "on a GPU of its own: no used one fits",
	PlaceLightest: "on the GPU that is free first",
	PlaceFirst:    "on the first GPU that fits",
	PlaceFullest:  "on the fullest GPU that fits",
	PlaceEmptiest: "on the emptiest GPU that fits",
	PlaceLatest:   "on the GPU that is free last and still fits",
	PlaceMarginal: "where it adds the least energy",
	PlaceMoved:    "moved there to save energy",
	PlaceForced:   "no used GPU has the room it wants: the cheapest place in time",
	PlaceLate:     "nothing fits in time: earliest finish",
	PlaceSoonest:  "as soon as a GPU is free",
	PlaceBeside:   "beside others on a GPU that is shared by what they use of it",
	PlaceRuns:     "it runs there already",
	PlaceTogether: "where enough nodes are free together",
	PlaceScored:   "on the node with the best score of those with room",
	PlacePlanned:  "where the plan of all that waits has it",
	PlaceBudget:   "where and when the power budget has room for it",
	PlacePrice:    "waits for hours in which energy is cheaper or cleaner",
	PlaceHeld:     "held back until a GPU came free",
}
