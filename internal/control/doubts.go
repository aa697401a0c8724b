package control

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// nearestClocks returns the pair of clocks that is nearest to what a user fixed, and
// how far off it is, in MHz.
func nearestClocks(clocks []dvfsmodel.Setting, w *slurm.Wishes) (near dvfsmodel.Setting, off float64) {
	off = math.Inf(1)
	for _, pair := range clocks {
		apart := math.Abs(float64(pair.Core) - float64(w.CoreMHz))
		if w.MemoryMHz > 0 {
			apart += math.Abs(float64(pair.Mem) - float64(w.MemoryMHz))
		}
		if apart < off {
			near, off = pair, apart
		}
	}
	return near, off
}

// unmeetableRequests looks for wishes that can be read and can hardly be met in a partition ("": in any).
type unmeetableRequests struct {
	decider   *decide.Decider
	jobs      *jobs.Tracker
	settings  *Settings
	partition string
}

// of says which of a user's wishes those are: clocks that no GPU has that the job may get, and a deadline
// before the time limit is over.
func (d *unmeetableRequests) of(w *slurm.Wishes, most live.Limit, now time.Time) (said []string) {
	if limit, set := most.Duration(); set && !w.Deadline.IsZero() && now.Add(limit).After(w.Deadline) {
		said = append(said, fmt.Sprintf("epplan:deadline: it is in %s, and the time limit is %s: "+
			"it is met only if the job takes less", w.Deadline.Sub(now).Round(time.Second), slurm.FormatLimit(limit)))
	}
	if w.HasSlack && w.Slack > 0 && d.settings.Live.Hours.By == config.HoursOff {
		said = append(said, "epplan:slack changes nothing: no price of hours is configured here")
	}
	said = append(said, d.capDoubt(w)...)
	if !w.HasFixedClocks() {
		return said
	}
	if above := decide.AboveSite(d.decider, &d.settings.Settings, w, d.partition); above != "" {
		return append(said, above)
	}
	type offer struct {
		off  float64
		text string
	}
	var offers []offer
	for _, model := range d.models() {
		var clocks []dvfsmodel.Setting
		if seen := d.decider.GPUs.Clocks(model); seen != nil {
			clocks = seen.Pairs
		} else if p := d.settings.Profiles.Find(model); p != nil {
			clocks = p.SupportedPairs()
		}
		near, off := nearestClocks(clocks, w)
		if off == 0 || len(clocks) == 0 { // it may have them
			return said
		}
		offers = append(offers, offer{off, fmt.Sprintf("%.0f,%.0f on %s", near.Core, near.Mem, model)})
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.off, b.off) })
	nearest := make([]string, min(len(offers), maxNearest))
	for i := range nearest {
		nearest[i] = offers[i].text
	}
	return append(said, fmt.Sprintf("epplan:fixed=%d: no GPU there has these clocks, so it runs at default "+
		"ones; the nearest: %s", w.CoreMHz, strings.Join(nearest, ", ")))
}

// capDoubt says where no GPU there takes a power limit.
func (d *unmeetableRequests) capDoubt(w *slurm.Wishes) (said []string) {
	if w.CapW <= 0 {
		return nil
	}
	least, most := math.Inf(1), 0.0
	for _, model := range d.models() {
		p := d.settings.Profiles.Find(model)
		if p == nil || p.PowerLimit.Min <= 0 { // it may take it
			return nil
		}
		least = min(least, float64(p.PowerLimit.Min))
		most = max(most, float64(cmp.Or(p.PowerLimit.Max, p.PowerLimit.Default)))
	}
	if limit := float64(w.CapW); most > 0 && (limit < least || limit > most) {
		said = append(said, fmt.Sprintf("epplan:cap=%d: GPUs there take limits of %g to %g W, so none is set",
			w.CapW, least, most))
	}
	return said
}

// models returns the GPU models there, as their agents name them; where an agent hasn't said, all that
// have clocks, too.
func (d *unmeetableRequests) models() []string {
	found, told := make(map[string]bool), true
	nodes := d.jobs.Nodes()
	for i := range nodes {
		n := &nodes[i]
		if n.GPUCount() == 0 || d.partition != "" && !slices.Contains(n.Partitions, d.partition) {
			continue
		}
		model := d.decider.GPUs.Of(n.Name)
		told = told && model != ""
		found[model] = true
	}
	delete(found, "")
	if told && len(found) > 0 {
		return slices.Sorted(maps.Keys(found))
	}
	models := d.decider.GPUs.Models(nil)
	for _, name := range d.settings.Profiles.Names() {
		if len(d.settings.Profiles.Find(name).Clocks) > 0 && !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	return models
}

// maxNearest is how many GPU models a word to the user names.
const maxNearest = 4
