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
	Want   float64 // run time at the task's own optimum, seconds
	Room   float64 // time that was available, seconds
}

// ClockReason is why a task runs at its clocks.
type ClockReason uint8

// Why clocks are as they are.
const (
	ClocksDefault   ClockReason = iota // the policy leaves clocks alone
	ClocksNoModel                      // nothing is known of how the job responds
	ClocksShared                       // part of a GPU: clocks belong to all who share it
	ClocksFree                         // least energy, no limit in the way
	ClocksDeadline                     // faster than the optimum: the deadline or limit demands it
	ClocksReadjust                     // θ-readjustment: shortened to use a running node
	ClocksStretched                    // Improve: lengthened into its node's idle time
	ClocksShrunk                       // Improve: shortened so that its node ends earlier
	ClocksLate                         // as fast as possible: the deadline is lost
	ClocksAdapted                      // those of a GPU that is shared, set for all who are on it
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
	PlaceBeside                      // beside others on a GPU that is shared
)

// String is the reason as a sentence without a full stop.
func (r Reason) String() string { return r.clocks() + "; " + r.place() }

func (r Reason) clocks() string {
	switch r.Clocks {
	case ClocksNoModel:
		return "no model: default clocks, given run time"
	case ClocksShared:
		return "shares a GPU: default clocks"
	case ClocksFree:
		return "free optimum" + r.slack()
	case ClocksDeadline:
		return fmt.Sprintf("deadline-bound: %.6g s allowed, the optimum takes %.6g s", r.Room, r.Want)
	case ClocksReadjust:
		return fmt.Sprintf("readjusted: shortened from %.6g s to the %.6g s left on its GPU", r.Want, r.Room)
	case ClocksStretched:
		return fmt.Sprintf("stretched from %.6g s to %.6g s into its node's idle time", r.Want, r.Room)
	case ClocksShrunk:
		return fmt.Sprintf("shortened from %.6g s to %.6g s so that its node ends earlier", r.Want, r.Room)
	case ClocksAdapted:
		return fmt.Sprintf("clocks of a GPU that may be shared, set for all who are on it; alone it takes %.6g s", r.Want)
	case ClocksLate:
		return "fastest clocks: the deadline can't be met here"
	default:
		return "default clocks"
	}
}

func (r Reason) slack() string {
	if r.Room <= r.Want || math.IsInf(r.Room, 1) || math.IsNaN(r.Room) {
		return ""
	}
	return fmt.Sprintf(", %.6g s to spare", r.Room-r.Want)
}

func (r Reason) place() string {
	switch r.Place {
	case PlaceLightest:
		return "on the GPU that is free first"
	case PlaceFirst:
		return "on the first GPU that fits"
	case PlaceFullest:
		return "on the fullest GPU that fits"
	case PlaceEmptiest:
		return "on the emptiest GPU that fits"
	case PlaceLatest:
		return "on the GPU that is free last and still fits"
	case PlaceMarginal:
		return "where it adds the least energy"
	case PlaceMoved:
		return "moved there to save energy"
	case PlaceForced:
		return "no used GPU has the room it wants: the cheapest place in time"
	case PlaceLate:
		return "nothing fits in time: earliest finish"
	case PlaceSoonest:
		return "as soon as a GPU is free"
	case PlaceBeside:
		return "beside others on a GPU that is shared by what they use of it"
	case PlaceScored:
		return "on the node with the best score of those with room"
	case PlaceHeld:
		return "held back until a GPU came free"
	default:
		return "on a GPU of its own: no used one fits"
	}
}
