package decide

import (
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestTheProfileIsThePartitionsWhereGPUsMayBeSet(t *testing.T) {
	s := settings(t, "[live]\nmode = \"enforce\"\nmodes = {watched = \"observe\"}\n"+
		"[live.profile]\nname = \"Max-Q\"\nnames = {fast = \"Max-P\", plain = \"off\", odd = \"HPC\"}\n")
	type asked struct {
		r      epdapi.DecideRequest
		job    *jobs.Job
		wishes slurm.Wishes
	}
	for name, c := range map[string]struct {
		partition string
		change    func(*asked)
		want      dvfsmodel.PowerProfile
	}{
		"the default one":         {"gpu", nil, dvfsmodel.MaxQ},
		"the partition's own":     {"fast", nil, dvfsmodel.MaxP},
		"off there":               {"plain", nil, 0},
		"not enforced":            {"watched", nil, 0},
		"the GPUs haven't got it": {"odd", nil, 0},
		"several partitions":      {"gpu,other", nil, dvfsmodel.MaxQ},
		"that differ":             {"gpu,fast", nil, 0},
		"opted out":               {"gpu", func(a *asked) { a.wishes.Off = true }, 0},
		"own clocks":              {"gpu", func(a *asked) { a.job.OwnFreq = true }, 0},
		"shared":                  {"gpu", func(a *asked) { a.r.Shared = true }, 0},
		"no GPUs":                 {"gpu", func(a *asked) { a.r.GPUs = 0 }, 0},
	} {
		a := asked{job: jobs.FromDescription(0, "", c.partition, ""), r: epdapi.DecideRequest{
			GPUs: 1, Clocks: []epdapi.ClockGroup{{Mem: 877, Core: []dvfsmodel.MHz{1380}}},
			Profiles: []string{"Max-P", "Max-Q", "what a newer epd knows"},
		}}
		if c.change != nil {
			c.change(&a)
		}
		if got := profileFor(s, &a.r, a.job, &a.wishes); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestANodeFollowsOnlyAProfileThatItHas(t *testing.T) {
	lead := &Decided{
		Decision: live.Decision{Node: "n1", Setting: dvfsmodel.Setting{Profile: dvfsmodel.MaxQ}}, submitted: 1,
	}
	stored, s := &record.Decision{Setting: lead.Setting}, settings(t, "")
	for has, want := range map[string]bool{"Max-Q": true, "Max-P": false} {
		other := &Decided{Decision: live.Decision{Node: "n2"}, submitted: 1, profiles: []string{has}}
		if got := lead.canLead(other); got != want {
			t.Errorf("with %s: follows: %v", has, got)
		}
		if got := storedCanLead(stored, &epdapi.DecideRequest{GPUs: 1, Profiles: []string{has}}, s); got != want {
			t.Errorf("with %s: follows what is stored: %v", has, got)
		}
	}
}
