package control

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

const adaptAll = "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\nmax_slowdown = 1.5\n[live.adapt]\nmode = \"on\"\n"

// adaptRig knows a workload that ran once.
func adaptRig(t *testing.T, text string, truth dvfsmodel.Params) *rig {
	t.Helper()
	r := newRig(t, func(o *Options) { o.Settings = settings(t, text) })
	r.run(1, truth)
	return r
}

func TestARunIsAdaptedBetweenItsSafeFloorAndItsCeiling(t *testing.T) {
	r := adaptRig(t, adaptAll, coreBound())
	r.job(2, nil)
	d := r.decide(ask(2))
	a := d.Adapt
	if a == nil || !d.Apply || a.SLA != 1.2 || a.TauS != 0.1 || a.Writes != 30 || a.WritePauseS != 1 ||
		d.Arm != live.ArmTreated || d.Mem != 0 {
		t.Fatalf("%+v of %+v", a, d)
	}
	clocks := make([]dvfsmodel.MHz, 0, len(a.Levels))
	for i, l := range a.Levels {
		clocks = append(clocks, l.Core)
		if want := float64(1380 / l.Core); l.Stretch > want+1e-9 || l.Stretch < 1 ||
			i > 0 && l.Stretch < a.Levels[i-1].Stretch {
			t.Errorf("%v MHz stretches by %v, want at most %v", float64(l.Core), l.Stretch, want)
		}
	}
	if want := []dvfsmodel.MHz{1380, 1237, 1087, 945, 802}; !slices.Equal(clocks, want) || d.Core != 1237 {
		t.Errorf("levels %v, begins with %v MHz", clocks, float64(d.Core))
	}
	if d.Upper.Or(0) < 1.2*600 || d.Upper.Or(0) > 3600 ||
		!strings.Contains(d.Reason, "adapted between core 802 and 1380 MHz") {
		t.Errorf("at most %v s: %s", d.Upper, d.Reason)
	}
	data, err := json.Marshal(&d)
	var back live.Decision
	if err != nil || json.Unmarshal(data, &back) != nil || !reflect.DeepEqual(back.Adapt, a) {
		t.Errorf("%s, %v", data, err)
	}
	o, err := r.Outlook(t.Context(), epdapi.OutlookRequest{Job: 2, Node: "n1", RunID: "run-2"})
	if err != nil || math.Abs(o.UpperS.Or(0)-d.Upper.Or(0)) > 1e-6 {
		t.Errorf("outlook %+v, %v, decided %v", o, err, d.Upper)
	}
}

// Clock writes hold up GPUs that wait for each other.
func TestAJobOfSeveralGPUsIsAdaptedOnlyWhereThatIsAskedFor(t *testing.T) {
	for text, want := range map[string]bool{
		adaptAll: false, adaptAll + "max_gpus = 3\n": false, adaptAll + "max_gpus = 4\n": true,
	} {
		r := newRig(t, func(o *Options) { o.Settings = settings(t, text) })
		decide := func(id slurm.JobID) live.Decision {
			r.job(id, func(j *slurm.Job) { j.Allocated = slurm.TRES{"gres/gpu": 4} })
			request := ask(id)
			request.GPUs = 4
			return r.decide(request)
		}
		r.record(r.ran(decide(1), ask(1).RunID, coreBound()), store.Stored)
		if d := decide(2); (d.Adapt != nil) != want || d.ModelVersion == 0 {
			t.Errorf("%s: adapted %+v, want %v: %s", text, d.Adapt, want, d.Reason)
		}
	}
}

func TestTheLimitIsAboveTheSLA(t *testing.T) {
	r := adaptRig(t, adaptAll, coreBound()) // ten minutes
	for id, c := range map[slurm.JobID]struct{ minutes, low, high float64 }{
		2: {60, 1.2, 1.2}, 3: {12.5, 1.02, 1.19}, 4: {10.5, 0, 0},
	} {
		r.job(id, func(j *slurm.Job) {
			j.TimeLimit = live.LimitOf(time.Duration(c.minutes * float64(time.Minute)))
		})
		d := r.decide(ask(id))
		sla := 0.0
		if d.Adapt != nil {
			sla = d.Adapt.SLA
			if d.Upper.Or(math.Inf(1)) > c.minutes*60+1e-9 ||
				d.Adapt.Levels[slices.IndexFunc(d.Adapt.Levels,
					func(l live.AdaptLevel) bool { return l.Core == d.Core })].Stretch > sla {
				t.Errorf("%v min: at most %v, begins with %v MHz at SLA %v", c.minutes, d.Upper,
					float64(d.Core), sla)
			}
		}
		if sla < c.low || sla > c.high {
			t.Errorf("%v min: SLA %v, want %v to %v", c.minutes, sla, c.low, c.high)
		}
	}
}

func TestAdaptationLeavesTheMarginOfTheLimitThatSettingsWant(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		minutes int
		adapted bool
	}{
		"as by default":    {minutes: 14, adapted: true},
		"half of the time": {"[safety]\nlimit_margin = 0.5\n", 14, false}, // 15 min
		"and there it is":  {"[safety]\nlimit_margin = 0.5\n", 18, true},
	} {
		r := adaptRig(t, c.text+adaptAll, coreBound()) // ten minutes
		limit := time.Duration(c.minutes) * time.Minute
		r.job(2, func(j *slurm.Job) { j.TimeLimit = live.LimitOf(limit) })
		d := r.decide(ask(2))
		if d.Adapt != nil != c.adapted {
			t.Errorf("%s: %+v, %s", name, d.Adapt, d.Reason)
		}
		if d.Adapt != nil && d.Upper.Or(math.Inf(1)) > 0.95*limit.Seconds()+1e-6 {
			t.Errorf("%s: at most %v s of %s, which the guard ends at once", name, d.Upper, limit)
		}
	}
}

// Work that takes a third of the time is stretched more than the run.
func TestHowMuchARunIsAtWorkIsRememberedWhileRunsAreAdapted(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Settings = settings(t, adaptAll) })
	truth := dvfsmodel.Params{P0: 60, Gamma: 20, C: 150, D: 200, Delta: 1, T0: 400}
	outcome := func(id slurm.JobID) *record.Outcome {
		r.job(id, nil)
		o := r.ran(r.decide(ask(id)), ask(id).RunID, truth)
		o.Utilisation = live.Known(1.0 / 3)
		return o
	}
	r.record(outcome(1), store.Stored)
	// after a refit, which r.record waits for.
	usage := func() float64 { return r.learner.Model(r.key()).Usage }
	before := usage()
	if math.Abs(before-1.0/3) > 1e-9 {
		t.Fatalf("at work for %v of the time", before)
	}
	for id := range slurm.JobID(window) {
		o := outcome(id + 2)
		o.Setting.Core = 802
		o.Clocks = []live.Residency{
			{Setting: dvfsmodel.Setting{Core: 802, Mem: 877}, Seconds: 300},
			{Setting: dvfsmodel.Setting{Core: 1380, Mem: 877}, Seconds: 300},
		}
		r.record(o, store.Stored)
	}
	if after := usage(); after != before {
		t.Errorf("at work for %v of the time after %d runs that were adapted, %v before", after,
			window, before)
	}
}

func TestNothingIsAdaptedWhereThatIsNotWanted(t *testing.T) {
	on := "[live.adapt]\nmode = \"on\"\n"
	for name, c := range map[string]struct {
		text   string
		change func(*slurm.Job)
		ask    func(*epdapi.DecideRequest)
	}{
		"by default":       {text: enforceAll},
		"other partitions": {text: enforceAll + "[live.adapt]\nmodes = {debug = \"on\"}\n"},
		"this one":         {text: adaptAll + "modes = {gpu = \"off\"}\n"},
		"too few writes":   {text: adaptAll + "writes_per_minute = 2\n"},
		"advice":           {text: mode("advise") + on},
		"observed":         {text: mode("observe") + on},
		"held out":         {text: "[live]\nmode = \"enforce\"\nhold_out = 1\n" + on},
		"explored":         {text: enforceAll + "explore = 1\n" + on},
		"opted out": {
			text: adaptAll, ask: func(r *epdapi.DecideRequest) { r.Comment = "epplan:off" },
			change: func(j *slurm.Job) { j.Comment = "epplan:off" },
		},
		"fixed":         {text: adaptAll, change: func(j *slurm.Job) { j.Comment = "epplan:fixed=1087" }},
		"several nodes": {text: adaptAll, change: func(j *slurm.Job) { j.NodeCount = 2 }},
		"shared":        {text: adaptAll, ask: func(r *epdapi.DecideRequest) { r.Shared = true }},
	} {
		r := adaptRig(t, c.text, coreBound())
		r.job(2, c.change)
		request := ask(2)
		if c.ask != nil {
			c.ask(request)
		}
		if d := r.decide(request); d.Adapt != nil {
			t.Errorf("%s: %+v, %s", name, d.Adapt, d.Reason)
		}
	}
}
