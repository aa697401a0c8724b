package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// The site's clocks ([live.site_clocks]) stand on its GPUs whoever runs there. They are what default clocks
// are elsewhere: the base of models, of the hold-out and of savings, and the highest that is chosen. A run by
// default is a sample at the clock that ran (learn), so that runs from before a change of the site's clocks
// stay samples.

// SiteClocks returns the highest clocks at which the site lets GPUs of a model run in some partitions, on a
// node ("": any), and whether the configuration says anything of them.
func (dr *Decider) SiteClocks(s *Settings, gpuModel, partitions, node string) (dvfsmodel.Setting, bool) {
	if node != "" && len(s.Live.SiteClocks.Partitions) > 0 {
		all := dr.options.Jobs.Nodes()
		if i := slices.IndexFunc(all, func(n slurm.Node) bool { return n.Name == node }); i >= 0 {
			partitions += "," + strings.Join(all[i].Partitions, ",")
		}
	}
	return s.Live.SiteClocksOf(s.ModelName(gpuModel), partitions, node)
}

// tableOn returns the clocks of a request's GPUs for a job of some partitions, and whether the configuration
// says what the site's clocks there are.
func (dr *Decider) tableOn(s *Settings, r *epdapi.DecideRequest, partitions string) (*ClockTable, bool) {
	site, named := dr.SiteClocks(s, r.GPUModel, partitions, r.Node)
	return dr.tables.get(s, r, site), named
}

const defaultWords, siteWords = "default clocks", "the site's clocks"

// nameSiteClocks has a decision say whose clocks the default ones are.
func (t *ClockTable) nameSiteClocks(d *live.Decision) {
	if t.Site == (dvfsmodel.Setting{}) {
		return
	}
	d.SiteClocks = t.Site
	d.Reason = strings.ReplaceAll(d.Reason, defaultWords, siteWords)
}

// isReason reports whether a text is a reason, whosever clocks the default ones were.
func isReason(text, reason string) bool {
	return text == reason || text == strings.ReplaceAll(reason, defaultWords, siteWords)
}

// suspectedWords says why a node is left alone whose GPUs somebody seems to hold down.
func suspectedWords(at dvfsmodel.MHz) string {
	return fmt.Sprintf("left alone: its GPUs are busy and never above %v MHz without a lock of epd's, as if the site held "+
		"them there, and site_clocks doesn't say so", float64(at))
}

// SuspectedLimits lists the nodes that are left alone because somebody else seems to hold their GPUs down.
func SuspectedLimits(d *Decider, s *Settings) []epdapi.SuspectedLimit {
	var all []epdapi.SuspectedLimit
	suspects := d.GPUs.Suspects()
	for _, node := range slices.Sorted(maps.Keys(suspects)) {
		at := suspects[node]
		if _, named := d.SiteClocks(s, at.GPUModel, "", node); !named {
			all = append(all, epdapi.SuspectedLimit{Node: node, GPUModel: at.GPUModel, Core: at.At})
		}
	}
	return all
}

// AboveSite tells a user that the clocks that are fixed are above the site's wherever the job may run; "":
// they aren't.
func AboveSite(d *Decider, s *Settings, wishes *slurm.Wishes, partition string) string {
	models := d.GPUs.Models(nil)
	if len(models) == 0 {
		models = slices.Collect(maps.Keys(s.Live.SiteClocks.Models))
	}
	fixed := dvfsmodel.Setting{Core: dvfsmodel.MHz(wishes.CoreMHz), Mem: dvfsmodel.MHz(wishes.MemoryMHz)}
	var highest dvfsmodel.Setting
	for _, model := range models {
		site, _ := d.SiteClocks(s, model, partition, "")
		if fixed.AtMost(site) == fixed {
			return ""
		}
		highest.Core, highest.Mem = max(highest.Core, site.Core), max(highest.Mem, site.Mem)
	}
	if len(models) == 0 {
		return ""
	}
	return "epplan:fixed asks for " + fixed.Words() + ", above the site's clocks, " + highest.Words() +
		": the job runs at the site's clocks"
}
