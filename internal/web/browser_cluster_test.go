package web_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// decision returns one on a job's run.
func decision(job int64) record.Decision {
	return record.Decision{
		ID: job, Cluster: "alpha", JobID: job, Node: "n1", RunID: "run-0", Workload: workload,
		GPUModel: "V100",
		Setting:  dvfsmodel.Setting{Core: 1110, Mem: 877}, Rung: "model", Mode: "enforce",
		ConfigVersion: "a1b2c3", ModelVersion: 3, Arm: live.ArmTreated,
		TimeS:  record.Interval{Value: live.Known(2882), Low: live.Known(2738), High: live.Known(3055)},
		PowerW: record.Interval{Value: live.Known(171)}, EnergyJ: record.Interval{Value: live.Known(985600)},
		DefaultJ: live.Known(1.197e6),
		Reason:   "model version 3 of 9 runs; optimum", Created: shownAt.Add(-50 * time.Minute),
		HoldOut: live.Known(.05),
	}
}

// Jobs whose runs were unlike others: the clocks of one were adapted, and epd was
// restarted while the other one ran.
const (
	adaptedJob   = 4715
	restartedJob = 4719
)

// restarted is what is known of the run that epd was restarted under.
var restarted = record.Restarted{TimeS: live.Known(5025), GPUEnergyJ: live.Known(912000)}

// unlike makes a run one of those.
func unlike(o *record.Outcome) {
	switch o.JobID {
	case adaptedJob:
		o.Slowdown, o.Stays = live.Known(1.0173), []dvfsmodel.ClockResidency{
			{Core: 600, Seconds: 1130, Work: 12, Energy: 96_000, Rest: 1040, RestEnergy: 83_000, Begun: 8},
			{Core: 1380, Seconds: 1690, Work: 1655, Energy: 870_000, Begun: 9},
			{Core: 990, Seconds: 6, Work: 2, Energy: 1900, Begun: 1},
		}
	case restartedJob:
		o.TimeS, o.GPUEnergyJ, o.Restarted = live.Number{}, live.Number{}, restarted
	}
}

// jobRow returns a job in a list.
func jobRow(i int) epdapi.JobRow {
	row := epdapi.JobRow{
		Job: epdapi.Job{
			ID: int64(4711 + i), Name: "train-" + strconv.Itoa(i), User: []string{"ada", "grace"}[i%2],
			Account: "physics", Partition: "gpu",
			State:     []string{"COMPLETED", "RUNNING", "FAILED", "TIMEOUT"}[i%4],
			Submitted: shownAt.Add(-time.Duration(i) * time.Hour), Nodes: 1, GPUs: 2,
			Limit: live.LimitOfSeconds(7200), Workload: workload, Scripted: true,
		},
		Mode: "enforce", Arm: live.ArmTreated, Setting: dvfsmodel.Setting{Core: 1110, Mem: 877}, Runs: 1,
		TimeS: live.Known(2900), EnergyJ: live.Known(490000),
	}
	if i == 2 {
		row.Name, row.User = hostile, "<b>eve</b>"
	}
	if i == restartedJob-4711 {
		row.TimeS, row.EnergyJ, row.Restarted = live.Number{}, live.Number{}, restarted
	}
	return row
}

func (c *cluster) Status(context.Context) (*epdapi.Status, error) {
	status := c.controller()
	return &epdapi.Status{
		Version: "1.0", Role: "controller", Node: "head", Started: status.Started, Controller: &status,
	}, nil
}

func (c *cluster) controller() epdapi.ControllerStatus {
	return epdapi.ControllerStatus{
		Cluster: "alpha", Started: shownAt.Add(-72 * time.Hour), ConfigVersion: "a1b2c3", Mode: live.Enforce,
		Modes: map[string]live.Mode{"debug": live.Observe, "test": live.Advise}, HoldOut: .05, Jobs: 40,
		Models: 7, Decisions: 900, Applied: 850, HeldOut: 50,
		Queue: epdapi.SyncStatus{At: shownAt.Add(-10 * time.Second)},
	}
}

func (c *cluster) Overview(context.Context) (*epdapi.Overview, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &epdapi.Overview{
		At: shownAt, Status: c.controller(), Power: c.power(),
		Queue: epdapi.QueueCounts{
			At: shownAt, Pending: len(c.queue.Jobs), Running: 3,
			States: map[string]int{"PENDING": len(c.queue.Jobs), "RUNNING": 3},
		},
		States: []epdapi.StateCount{{State: "COMPLETED", Runs: 800}, {State: "FAILED", Runs: 20}, {Runs: 3}},
		Savings: epdapi.Savings{
			GPU: epdapi.Saving{
				Runs: 760, Against: 40, SavedJ: 9.4e8, LowJ: 7.1e8, HighJ: 11.7e8, BaselineJ: 6.2e9,
			},
			Node: epdapi.Saving{
				Runs: 700, Against: 38, SavedJ: 6.0e8, LowJ: -1e8, HighJ: 13e8, BaselineJ: 8.8e9, Needed: 80,
			},
			Workloads: 12, Alone: 3, Treated: 760, HeldOut: 40, HoldOut: .05,
			TreatedEnded: epdapi.EndingCounts{Ended: 790, Completed: 760},
			HeldOutEnded: epdapi.EndingCounts{Ended: 42, Completed: 40},
			Modelled:     epdapi.ModelledUse{Runs: 740, DefaultJ: 6.1e9, UsedJ: 5.2e9},
			Factors:      epdapi.Factors{PUE: 1.3, CarbonPerKWh: 380, CostPerKWh: .28, Currency: "EUR"},
		},
	}
	for i := range epdapi.OverviewDays {
		n := int64(20 + i%9)
		o.Days = append(o.Days, epdapi.Day{
			Day: shownAt.Truncate(24*time.Hour).AddDate(0, 0, i+1-epdapi.OverviewDays), Runs: n,
			Completed: n - 1, Treated: n - 2, HeldOut: 1,
			Measured: n, GPUEnergyJ: 4e5 * float64(n), NodeJ: 6e5 * float64(n), NodeRuns: n,
			TimeS: 3000 * float64(n),
		})
	}
	for i, runs := range []int64{20, 160} {
		month := time.Date(2026, time.May-time.Month(i), 1, 0, 0, 0, 0, time.UTC)
		o.Months = append(o.Months, epdapi.Day{
			Day: month, Runs: runs, Completed: runs - 4, HeldOut: runs / 20, GPUEnergyJ: 4e5 * float64(runs),
			NodeJ: 6e5 * float64(runs), Saved: &epdapi.GroupSaving{Node: o.Savings.Node},
		})
	}
	for i := range epdapi.OverviewHours {
		used := 9000 + 4000*math.Sin(float64(i)/4)
		o.Hours = append(o.Hours, epdapi.HourPower{
			From:  shownAt.Truncate(time.Hour).Add(time.Duration(i+1-epdapi.OverviewHours) * time.Hour),
			UsedW: used, DefaultW: 1.17 * used, HeldOutW: used / 20,
		})
	}
	for i := range 6 {
		o.Jobs = append(o.Jobs, jobRow(i))
		d := epdapi.JobDecision{
			Decision: decision(int64(4711 + i)), Name: jobRow(i).Name, User: "ada", Partition: "gpu",
			Apply: i%2 == 0, Would: live.Known(1.07e5),
		}
		o.Decisions = append(o.Decisions, d)
	}
	return o, nil
}

func (c *cluster) power() epdapi.ClusterPower {
	return epdapi.ClusterPower{GPUW: 1234, GPUs: 8, Nodes: 2, Silent: 1, Oldest: 9, Busy: 5, Held: 5}
}

func (c *cluster) Jobs(_ context.Context, query url.Values) (*epdapi.JobPage, error) {
	p := &epdapi.JobPage{Next: 4600}
	for i := range 20 {
		if row := jobRow(i); query.Get("user") == "" || row.User == query.Get("user") {
			p.Jobs = append(p.Jobs, row)
		}
	}
	return p, nil
}

func (c *cluster) Job(_ context.Context, job string) (*epdapi.JobView, error) {
	number, _ := strconv.Atoi(job)
	at := number - 4711
	if at < 0 || at >= 20 {
		return nil, refused(http.StatusNotFound, "there is no such job")
	}
	row := jobRow(at)
	point := func(core dvfsmodel.MHz, t, p float64) *epdapi.Point {
		return &epdapi.Point{
			Setting: dvfsmodel.Setting{Core: core, Mem: 877}, TimeS: t, LowerS: .95 * t, UpperS: 1.06 * t,
			PowerW: 2 * p, EnergyJ: 2 * t * p, HostJ: 50 * t,
		}
	}
	view := &epdapi.JobView{
		Job: &row.Job, ConfigVersion: "a1b2c3", Objective: epdapi.Objective{EnergyWeight: 1},
		Wishes: &epdapi.Wishes{Deadline: shownAt.Add(3 * time.Hour)},
		Decisions: []epdapi.Decision{{
			Decision: decision(int64(number)), Model: &epdapi.Model{
				Version: 3, Samples: 9, Margin: .06, MinCore: 700, MaxCore: 1380,
			},
			Default: point(1380, 2494, 240), Chosen: point(1110, 2882, 171),
		}},
	}
	view.Outcomes = []epdapi.Outcome{{Outcome: record.Outcome{
		Cluster: "alpha", RunID: "run-0", JobID: int64(number), Node: "n1", DecisionID: int64(number),
		Workload: workload, GPUModel: "V100", Arm: live.ArmTreated,
		Submitted: row.Submitted, Started: shownAt.Add(-50 * time.Minute),
		Ended: shownAt.Add(-2 * time.Minute), GPUs: []string{"GPU-1", "GPU-2"}, ExitState: "COMPLETED",
		Setting: dvfsmodel.Setting{Core: 1110, Mem: 877}, TimeS: live.Known(2880),
		GPUEnergyJ: live.Known(980000), NodeEnergyJ: live.Known(1.4e6),
		MeanPowerW: live.Known(340), PeakPowerW: live.Known(401), Utilisation: live.Known(.93),
		PeakMemoryBytes: live.Known(12e9),
		Clocks:          []live.Residency{{Setting: dvfsmodel.Setting{Core: 1110, Mem: 877}, Seconds: 2800}},
		ThrottledS:      map[string]float64{"sw_power_cap": 12},
	}}}
	unlike(&view.Outcomes[0].Outcome)
	return view, nil
}

func (c *cluster) Series(context.Context, slurm.JobID) (*epdapi.JobSeries, error) {
	band := func(mean, wave float64) epdapi.Band {
		b := epdapi.Band{IntervalS: 45}
		for i := range 64 {
			v := mean + wave*math.Sin(float64(i)/5)
			b.Mean, b.Low, b.High = append(b.Mean, live.Known(v)), append(b.Low, live.Known(v-wave/3)),
				append(b.High, live.Known(v+wave/3))
		}
		b.Mean[20], b.Low[20], b.High[20] = live.Number{}, live.Number{}, live.Number{}
		return b
	}
	used := epdapi.Series{IntervalS: 45}
	for i := range 64 {
		used.Values = append(used.Values, live.Known(.9+.08*math.Sin(float64(i))))
	}
	return &epdapi.JobSeries{Runs: []epdapi.RunSeries{{
		RunID: "run-0", Node: "n1", GPUModel: "V100", GPUs: 2, Started: shownAt.Add(-50 * time.Minute),
		Ended: shownAt.Add(-2 * time.Minute), At: shownAt.Add(-2 * time.Minute),
		Setting: dvfsmodel.Setting{Core: 1110, Mem: 877}, Power: band(171, 20), Core: band(1105, 12),
		Utilisation: used,
	}}}, nil
}

func (c *cluster) Levers(context.Context) (*epdapi.Levers, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &epdapi.Levers{Status: steer.Status{
		At: shownAt.Add(-20 * time.Second), Paused: c.paused, Nice: 4, Weights: 2, Asleep: 1, Set: 40,
		Undone: 12, Policy: "edl", Order: []slurm.JobID{5000, 5003},
		Advice: []steer.Advice{{
			Kind: "limit", Job: 4712, User: "grace", Partition: "test",
			Text: "its limit is 7 times as long as it takes: " + hostile,
		}},
		Notes: []string{"nodes can't be put to sleep: Slurm has no SuspendProgram"},
	}}
	if c.paused {
		l.Nice, l.Weights, l.Asleep = 0, 0, 0
	}
	return l, nil
}

func (c *cluster) Nodes(context.Context) (*epdapi.NodeList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &epdapi.NodeList{At: shownAt, Power: c.power()}
	for i := range 3 {
		node := epdapi.NodeView{
			Name: "n" + strconv.Itoa(i+1), State: []string{"MIXED", "IDLE", "DOWN+DRAIN"}[i],
			Partitions: []string{"gpu", "test"}, GPUs: 4,
			Heard: shownAt.Add(-9 * time.Second), Fresh: i < 2, SkewS: .02,
		}
		if i == 2 {
			node.Reason, node.Heard = "bad cable "+hostile, shownAt.Add(-3*time.Hour)
			list.Nodes = append(list.Nodes, node)
			continue
		}
		report := &epdapi.NodeReport{
			Node: node.Name, Version: "1.0", Started: shownAt.Add(-70 * time.Hour),
			At: shownAt.Add(-9 * time.Second), Troubles: []epdapi.Problem{{
				At: shownAt.Add(-time.Hour), Message: "a GPU didn't answer",
			}}, Troubled: 1,
		}
		for g := range 4 {
			gpu := epdapi.NodeGPU{
				GPU: epdapi.GPU{
					UUID: fmt.Sprintf("GPU-%d-%d", i, g), Bus: "0000:3b:00.0", Model: "V100", Minor: g,
					Setting: dvfsmodel.Setting{Core: 1110, Mem: 877}, Power: 170,
				},
				Read: true, Utilisation: live.Known(.9), Writes: 40, MinCore: 510, MaxCore: 1530,
			}
			if i == 0 && g < 2 {
				gpu.LockedCore, gpu.Journal = 1110, &epdapi.JournalEntry{
					Since: shownAt.Add(-50 * time.Minute), RunID: "run-0", Job: 4712,
				}
			}
			report.GPUs = append(report.GPUs, gpu)
		}
		if i == 0 {
			report.Runs = []epdapi.NodeRun{{
				Run: epdapi.Run{
					ID: "run-0", Job: 4712, GPUs: []string{"GPU-0-0", "GPU-0-1"},
					Setting: dvfsmodel.Setting{Core: 1110}, Started: shownAt.Add(-50 * time.Minute),
				}, Partition: "gpu",
			}}
		}
		node.Report = report
		list.Nodes = append(list.Nodes, node)
	}
	return list, nil
}
