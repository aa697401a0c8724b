package live

import "slices"

// NotLocked is why clocks that were decided for a run weren't set, or not to its end. The zero value: they were, or
// nothing was decided.
type NotLocked struct {
	Kind NotLockedKind `json:"kind"`
	Why  string        `json:"why"` // in words
}

// NotLockedKind is what kept clocks from being set.
type NotLockedKind string

// What keeps clocks from being set, or has them given back before a run's end.
const (
	NotLockedLate       NotLockedKind = "late"       // the hook's deadline passed, or the controller's answer didn't come in time
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
	NotLockedLate, NotLockedPermission, NotLockedDriver, NotLockedLost, NotLockedExternal, NotLockedShared,
	NotLockedSetting, NotLockedLimit, NotLockedRestart, NotLockedOther,
}

// Cut returns the reason with at most so many bytes of words, and a kind that there is.
func (n NotLocked) Cut(bytes int) NotLocked {
	if n != (NotLocked{}) && !slices.Contains(NotLockedKinds, n.Kind) {
		n.Kind = NotLockedOther
	}
	n.Why = n.Why[:min(len(n.Why), bytes)]
	return n
}
