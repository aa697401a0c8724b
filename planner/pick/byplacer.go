package pick

import "github.com/epplan/epplan/planner"

// ByPlacer leaves the choice to a Placer that defers tasks and is its own
// Picker, as place.LateBinding and place.Replan make: which task starts, and on which GPU, is one
// decision there. With any other Placer it is [EDF].
func ByPlacer(v *planner.View, pl planner.Placer) planner.Picker {
	if picker, ok := pl.(planner.Picker); ok {
		return picker
	}
	return EDF(v, pl)
}
