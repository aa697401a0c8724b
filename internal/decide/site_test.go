package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

var v100Clocks = []dvfsmodel.MHz{802, 945, 1087, 1237, 1380}

// v100Request asks about a V100 of node n1.
func v100Request() *epdapi.DecideRequest {
	return &epdapi.DecideRequest{
		Job: 7, Node: "n1", RunID: "r", GPUModel: "V100", GPUs: 1,
		Clocks: []epdapi.ClockGroup{{Mem: 877, Core: v100Clocks}},
	}
}

func TestTheSitesClocksAreTheDefaultOnesAndNothingIsAbove(t *testing.T) {
	s := settings(t, "")
	for site, base := range map[dvfsmodel.MHz]dvfsmodel.MHz{
		0: 1380, 802: 802, 1000: 945, 1237: 1237, 1300: 1237, 1380: 1380, 2000: 1380, 100: 802,
	} {
		table := newTable(s, v100Request(), dvfsmodel.Setting{Core: site})
		if table.Base.Core != base || len(table.Pairs) != len(v100Clocks) {
			t.Errorf("under %v MHz: default clocks %v, %d pairs", float64(site), table.Base, len(table.Pairs))
		}
		for _, pair := range table.Allowed {
			if site > 0 && pair.Core > site {
				t.Errorf("under %v MHz %v may be set", float64(site), pair)
			}
		}
	}
}

// decided is what is decided for a job on n1 with a comment, by a configuration.
func decidedUnder(tb testing.TB, text, comment string) *Decided {
	tb.Helper()
	dr, known := newDecider(tb, 1, func() time.Time { return start })
	s := settings(tb, text)
	dr.options.Settings = func() *Settings { return s }
	known.Observe([]slurm.Job{{
		ID: 7, Partition: "gpu", Comment: comment, State: slurm.JobState{Base: slurm.Running},
		Nodes: []string{"n1"}, NodeCount: 1,
		TRESPerNode: "gres:gpu:1",
	}})
	request := v100Request()
	d, _, _ := dr.Decide(tb.Context(), request)
	return d
}

func TestAUsersClocksAreNeverAboveTheSites(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		clock := rapid.SampledFrom([]int{802, 945, 1087, 1237, 1380})
		site, fixed := clock.Draw(r, "site"), clock.Draw(r, "fixed")
		where := rapid.SampledFrom([]string{"", ".nodes.n1", ".nodes.\"n[1-4]\"", ".partitions.gpu"}).Draw(r,
			"where")
		d := decidedUnder(t, fmt.Sprintf("[live]\nmode = \"enforce\"\n[live.site_clocks%s]\nV100 = %d\n", where,
			site),
			fmt.Sprintf("epplan:fixed=%d", fixed))
		switch {
		case fixed > site && (d.Apply || !strings.Contains(d.Reason, "above the site's clocks") ||
			strings.Contains(d.Reason, "default clocks")):
			r.Fatalf("core %v, %v, %s", float64(d.Core), d.Apply, d.Reason)
		case fixed <= site && (!d.Apply || d.Core != dvfsmodel.MHz(fixed)):
			r.Fatalf("core %v, %v, %s", float64(d.Core), d.Apply, d.Reason)
		}
	})
}

func TestReasonsNameTheSitesClocksWhereTheyAreTheDefaultOnes(t *testing.T) {
	d := decidedUnder(t, "[live]\nmode = \"enforce\"\nsite_clocks = {V100 = 1237}\n", "")
	if !strings.HasPrefix(d.Reason, "the site's clocks: ") || d.SiteClocks.Core != 1237 {
		t.Errorf("%v, %s", d.SiteClocks, d.Reason)
	}
	for _, text := range []string{
		"", "site_clocks = {V100 = 1380}\n",
		"site_clocks = {nodes = {n2 = {V100 = 802}}}\n",
	} {
		d := decidedUnder(t, "[live]\nmode = \"enforce\"\n"+text, "")
		if !strings.HasPrefix(d.Reason, "default clocks: ") || d.SiteClocks != (dvfsmodel.Setting{}) {
			t.Errorf("%q: %v, %s", text, d.SiteClocks, d.Reason)
		}
	}
}

func TestANodeThatSeemsToBeHeldDownIsLeftAloneUntilTheConfigurationSays(t *testing.T) {
	for text, alone := range map[string]bool{
		"": true, "site_clocks = {A100 = 1410}\n": true, "site_clocks = {V100 = 1380}\n": false,
		"site_clocks = {nodes = {n1 = {V100 = 1237}}}\n": false,
		"site_clocks = {nodes = {n2 = {V100 = 1237}}}\n": true,
	} {
		dr, known := newDecider(t, 1, func() time.Time { return start })
		s := settings(t, "[live]\nmode = \"enforce\"\n"+text)
		dr.options.Settings = func() *Settings { return s }
		dr.GPUs.See("n1", "V100", 1237)
		known.Observe([]slurm.Job{{
			ID: 7, Partition: "gpu", Comment: "epplan:fixed=802", State: slurm.JobState{Base: slurm.Running},
			Nodes: []string{"n1"}, NodeCount: 1,
			TRESPerNode: "gres:gpu:1",
		}})
		d, _, _ := dr.Decide(t.Context(), v100Request())
		if d.Apply == alone || alone != strings.Contains(d.Reason,
			"left alone: its GPUs are busy and never above 1237 MHz") ||
			alone && d.Arm != live.ArmExcluded {
			t.Errorf("%q: %v, %s, %s", text, d.Apply, d.Arm, d.Reason)
		}
		dr.GPUs.See("n1", "V100", 0)
		if got := dr.GPUs.suspected("n1"); got != 0 {
			t.Errorf("still suspected: %v", got)
		}
	}
}
