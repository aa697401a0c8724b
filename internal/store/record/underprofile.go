package record

import (
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// A workload under a power profile is one of its own: how long a run takes and what it draws is different
// there at every clock, so that neither a model nor a sum has runs of both.

// profileMark is what stands between a workload and the power profile that its runs are under.
const profileMark = "@"

// UnderProfile returns the key of a workload under a power profile; under none it is the workload itself.
func UnderProfile(workload string, p dvfsmodel.PowerProfile) string {
	if p == 0 || workload == "" {
		return workload
	}
	return workload + profileMark + p.String()
}

// ProfileOf returns the power profile that the runs of a workload are under.
func ProfileOf(workload string) dvfsmodel.PowerProfile {
	_, name, _ := strings.Cut(workload, profileMark)
	p, err := dvfsmodel.ParsePowerProfile(name)
	if err != nil {
		return 0
	}
	return p
}
