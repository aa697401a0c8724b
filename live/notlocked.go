package live

import "slices"

// NotLocked is why clocks that were decided for a run weren't set, or not to its end. The zero value: they
// were, or nothing was decided.
type NotLocked struct {
	Kind NotLockedKind `json:"kind"`
	Why  string        `json:"why"` // in words
}

// NotLockedKind is what kept clocks from being set.
type NotLockedKind string

// What keeps clocks from being set, or has them given back before a run's end.
const (
	NotLockedLate       NotLockedKind = "late"       // the hook's deadline passed
	NotLockedController NotLockedKind = "controller" // the controller's answer didn't come, or not in time
	NotLockedJournal    NotLockedKind = "journal"    // the journal or the run couldn't be written down
	NotLockedPermission NotLockedKind = "permission" // the driver doesn't let the agent
	NotLockedDriver     NotLockedKind = "driver"     // the driver refused, failed or didn't answer
	NotLockedLost       NotLockedKind = "lost"       // a GPU was lost, or isn't there
	NotLockedExternal   NotLockedKind = "external"   // somebody else set or gave back the clocks
	NotLockedShared     NotLockedKind = "shared"     // another run on the GPU wants others
	NotLockedSetting    NotLockedKind = "setting"    // the GPU or the administrator doesn't allow the clocks
	NotLockedLimit      NotLockedKind = "limit"      // the time limit came near
	NotLockedRestart    NotLockedKind = "restart"    // epd was stopped or started again
	NotLockedOther      NotLockedKind = "other"
)

// NotLockedKinds lists all kinds.
var NotLockedKinds = []NotLockedKind{
	NotLockedLate, NotLockedController, NotLockedJournal, NotLockedPermission, NotLockedDriver, NotLockedLost,
	NotLockedExternal, NotLockedShared,
	NotLockedSetting, NotLockedLimit, NotLockedRestart, NotLockedOther,
}

// Truncated returns the reason with at most so many bytes of words, and a kind that there is.
func (n NotLocked) Truncated(bytes int) NotLocked {
	if n != (NotLocked{}) && !slices.Contains(NotLockedKinds, n.Kind) {
		n.Kind = NotLockedOther
	}
	n.Why = n.Why[:min(len(n.Why), bytes)]
	return n
}

// IsPartly reports whether the clocks may have been set for a part of the run.
func (n NotLocked) IsPartly() bool {
	switch n.Kind {
	case NotLockedExternal, NotLockedLimit, NotLockedRestart, NotLockedLost, NotLockedShared, NotLockedOther:
		return true
	case NotLockedLate, NotLockedController, NotLockedJournal, NotLockedPermission, NotLockedDriver,
		NotLockedSetting:
	}
	return false
}

// Words says what kept clocks from being set.
func (k NotLockedKind) Words() string {
	switch k {
	case NotLockedLate:
		return "the Prolog's time was over"
	case NotLockedController:
		return "without the controller's answer"
	case NotLockedJournal:
		return "nothing could be written down"
	case NotLockedPermission:
		return "no permission"
	case NotLockedDriver:
		return "the driver failed"
	case NotLockedLost:
		return "a GPU was lost"
	case NotLockedExternal:
		return "somebody else set the clocks"
	case NotLockedShared:
		return "beside another run"
	case NotLockedSetting:
		return "clocks that the GPU mustn't have"
	case NotLockedLimit:
		return "the time limit came near"
	case NotLockedRestart:
		return "epd was restarted"
	case NotLockedOther:
	}
	return "for another reason"
}
