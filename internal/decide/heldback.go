package decide

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
)

// relaxed is a choice without one of the bounds that it has.
type relaxed struct {
	key    string // that sets the bound
	safe   *choose.SafeResponse
	budget float64
}

// heldBackWords says which bounds forbid clocks that would be chosen instead of the default ones, and what these
// would have come to; "" if no single one does. The least bound of those that each change the choice alone comes
// first.
func heldBackWords(ch *chooser, budget float64, bound string) string {
	if ch.safe != ch.uncapped { // a constant power limit is chosen with the clocks
		return ""
	}
	slower, allowed := *ch.safe, *ch.safe
	slower.Stretch = math.Inf(1)
	all := []relaxed{{"max_slowdown", &slower, budget}, {bound, ch.safe, math.Inf(1)}}
	if ch.slowdown > 0 {
		all[0].key = "epplan:slowdown"
	}
	if allowed.ByCap == (dvfsmodel.CapRange{}) && len(ch.table.Pairs) > len(ch.table.Allowed) {
		allowed.Settings = ch.table.Pairs
		all = append(all, relaxed{"min_core and the other bounds of clocks", &allowed, budget})
	}
	var forbid []string
	for _, r := range all {
		best, err := r.safe.Optimum(ch.objective(), r.budget)
		if err != nil {
			continue
		}
		best, _ = worthSetting(ch, &best, r.budget)
		if standard := &ch.safe.Standard; best.Core == standard.Core && best.Mem == standard.Mem {
			continue
		}
		at := dvfsmodel.Setting{Core: best.Core}
		if best.Mem != ch.safe.Standard.Mem {
			at.Mem = best.Mem
		}
		forbid = append(forbid, fmt.Sprintf("%s forbids %s, at %s and %.0f%% of the time", r.key, at.Words(),
			ch.energyWords(&best), 100*best.Time/ch.safe.Standard.Time))
	}
	return strings.Join(slices.Compact(forbid), "; ")
}
