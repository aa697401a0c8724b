package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// onSite puts a configuration of the site's clocks in force.
func (r *rig) onSite(text string) {
	r.t.Helper()
	if err := r.Reload(func() (*Settings, error) {
		return settings(r.t, "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\n"+text), nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

func TestAnAgentIsToldTheSitesClocksOfItsGPUs(t *testing.T) {
	r := newRig(t, nil)
	report := &epdapi.NodeReport{Node: "n1", GPUs: []epdapi.NodeGPU{
		{GPU: epdapi.GPU{UUID: "GPU-0", Model: "Tesla V100"}},
		{GPU: epdapi.GPU{UUID: "GPU-1", Model: "NVIDIA A100-SXM4-40GB"}},
	}}
	if got := r.hear(report).SiteClocks; got == nil || len(got) != 0 {
		t.Errorf("without a configuration: %v, want an empty list", got)
	}
	r.onSite("[live.site_clocks]\nV100 = 1237\n[live.site_clocks.nodes.\"n[1-2]\"]\nV100 = [1087, 877]\n")
	got := r.hear(report).SiteClocks
	if want := (epdapi.SiteClocks{UUID: "GPU-0", Core: 1087, Mem: 877}); len(got) != 1 || got[0] != want {
		t.Errorf("%v, want %v", got, want)
	}
	// Which partitions the node is in isn't known before Slurm said.
	r.onSite("[live.site_clocks.partitions.main]\nV100 = 1237\n")
	if got := r.hear(report).SiteClocks; got != nil {
		t.Errorf("before Slurm said of nodes: %v, want nothing", got)
	}
	if err := takeNodes(t.Context(), r.Controller,
		nodesAlone{{Name: "n1", Partitions: []string{"low", "main"}}}); err != nil {
		t.Fatal(err)
	}
	got = r.hear(report).SiteClocks
	if want := (epdapi.SiteClocks{UUID: "GPU-0", Core: 1237}); len(got) != 1 || got[0] != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAUserIsToldAtSubmissionThatFixedClocksAreAboveTheSites(t *testing.T) {
	r := newRig(t, nil)
	submitted := func(comment string) string {
		answer, err := r.Submit(context.Background(), &hooks.Submission{
			Version: hooks.ProtocolVersion, UID: 1000, Name: "train", Partition: "main",
			TRESPerNode: "gres:gpu:1", Kind: "batch", Comment: hooks.Hex(comment),
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(answer.Message)
	}
	const said = "epplan:fixed asks for core 1380 MHz, above the site's clocks, core 1237 MHz"
	if got := submitted("epplan:fixed=1380"); strings.Contains(got, "site") {
		t.Errorf("without site clocks: %q", got)
	}
	r.onSite("[live.site_clocks]\nV100 = 1237\n")
	if got := submitted("epplan:fixed=1380"); !strings.Contains(got, said) {
		t.Errorf("said %q, want %q", got, said)
	}
	for _, comment := range []string{"epplan:fixed=1237", "epplan:off", ""} {
		if got := submitted(comment); strings.Contains(got, "site") {
			t.Errorf("%q is told %q", comment, got)
		}
	}
	r.hear(&epdapi.NodeReport{Node: "n2", GPUs: []epdapi.NodeGPU{{GPU: epdapi.GPU{
		UUID:  "GPU-0",
		Model: "A100",
	}}}})
	if got := submitted("epplan:fixed=1380"); strings.Contains(got, "site") {
		t.Errorf("where it may run on another model: %q", got)
	}
}

func TestSuspectedLimitsAreInTheStatusUntilTheConfigurationNamesThem(t *testing.T) {
	r := newRig(t, nil)
	r.hear(&epdapi.NodeReport{Node: "n1", GPUs: []epdapi.NodeGPU{{
		GPU: epdapi.GPU{UUID: "GPU-0", Model: "Tesla V100"}, SuspectedLimit: 1237,
	}}})
	suspected := func() []epdapi.SuspectedLimit { return r.status().Suspected }
	if got := suspected(); len(got) != 1 || got[0] != (epdapi.SuspectedLimit{
		Node: "n1", GPUModel: "V100",
		Core: 1237,
	}) {
		t.Errorf("%v", got)
	}
	r.onSite("[live.site_clocks]\nV100 = 1380\n")
	if got := suspected(); len(got) != 0 {
		t.Errorf("named, and still %v", got)
	}
}

// The site's clocks are what savings and choices are compared with.
func TestTheSitesClocksAreTheBaseOfChoicesAndNothingIsSetAbove(t *testing.T) {
	r := newRig(t, nil)
	r.onSite("[live.site_clocks]\nV100 = 1237\n")
	for id := range slurm.JobID(12) {
		d := r.run(id+1, coreBound())
		if d.Core > 1237 {
			t.Errorf("job %d at %v: %s", d.Job, d.Setting, d.Reason)
		}
		if strings.Contains(d.Reason, "default clocks") || d.SiteClocks.Core != 1237 {
			t.Errorf("job %d: %s; the site's clocks %v", d.Job, d.Reason, d.SiteClocks)
		}
	}
}

// Plans of the queue by somebody who hasn't the configuration, as epplan plan --from-slurm's, keep to it, too.
func TestPlansOfTheQueueKeepToTheSitesClocks(t *testing.T) {
	for _, most := range []float64{0, 1237, 1087} {
		r := newRig(t, nil)
		if most > 0 {
			r.onSite(fmt.Sprintf("[live.site_clocks]\nV100 = %v\n", most))
		}
		for id := range slurm.JobID(6) {
			r.run(id+1, coreBound())
		}
		pending := pendingAt(r.clock.read())
		r.sync(fixedSlurm{
			jobs: []slurm.Job{
				pending(10, func(j *slurm.Job) { j.TRESPerNode = "gres/gpu:1" }),
				pending(11, func(j *slurm.Job) { j.TRESPerNode, j.Name = "gres/gpu:4", "another" }),
			},
			nodes: []slurm.Node{within(gpuNode("n1", "gpu:v100:8", "IDLE"), "gpu")},
		})
		if text := r.queue(&operator).Profiles; most == 0 && text != "" ||
			most > 0 && !strings.Contains(text, fmt.Sprintf("default_core_mhz = %v\n", most)) {
			t.Errorf("site %v: %s", most, text)
		}
		p := planOf(t, r)
		if len(p.Jobs) != 2 {
			t.Fatalf("%+v", p.Jobs)
		}
		for i := range p.Jobs {
			if core := float64(p.Jobs[i].Core); most > 0 && core > most { // 0: the site's
				t.Errorf("site %v: planned %v", most, p.Jobs[i].Setting)
			}
		}
	}
}

func TestSavingsSayThatDefaultClocksAreTheSites(t *testing.T) {
	r := newRig(t, nil)
	for text, want := range map[string]string{
		"":                                  "",
		"[live.site_clocks]\nV100 = 1237\n": "; default clocks are the site's (site_clocks): V100 core 1237 MHz",
	} {
		r.onSite(text)
		sum, err := r.Queries.Savings(t.Context(), query.ForEPD(), time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(sum.SlowdownWords(), ")"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
