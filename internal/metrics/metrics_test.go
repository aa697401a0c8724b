package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/metrics"
	"github.com/epplan/epplan/live"
)

// controller returns a controller that has something of everything.
func controller(context.Context) epdapi.ControllerStatus {
	return epdapi.ControllerStatus{
		Budgets: &epdapi.BudgetList{Scopes: []epdapi.BudgetScope{
			{Scope: "cluster", Budget: live.Known(300e3), InForce: 298e3, Measured: 251e3, Ignoring: []string{"a"}},
			{Scope: "gpu", InForce: 20e3, Measured: 10e3, Short: 300},
		}},
		Forecasts: &epdapi.ForecastStatus{
			Enabled: true, Jobs: 40, Trainings: 2, Missed: 1, Aligned: 3, AskErrors: 4,
			Scores: []epdapi.ForecastScore{
				{Target: "time", Jobs: 9, Coverage: 0.875, MedianError: 0.125},
				{Target: "time", Rung: "script only", Jobs: 2, Coverage: 1, MedianError: 0.5},
			},
		},
		ConfigVersion: "a1b2c3", HoldOut: 0.05, ConstantArm: 0.1, Jobs: 9, Tokens: 2, Decided: 3, Models: 4,
		Submissions: 100,
		BadRequests: 1, Outcomes: 50, OutcomeErrors: 2, Refits: 7, Retired: 1, AdaptedRuns: 11,
		SharedRuns: 12, Asleep: 13, Waking: 14, Unwritten: 5, Lost: 6, Implausible: 15, Trouble: "disk full",
		Queue: epdapi.SyncStatus{At: time.Unix(1.7e9, 5e8)},
		Nodes: epdapi.SyncStatus{At: time.Unix(1.7e9, 0), Failures: 3},
	}
}

func savings(context.Context) (epdapi.Savings, error) {
	return epdapi.Savings{
		Factors: epdapi.Factors{PUE: 1.5, CostPerKWh: 0.36, Currency: "EUR", CarbonPerKWh: 360},

		GPU:  epdapi.Saving{Runs: 30, SavedJ: 1e6, LowJ: 8e5, HighJ: 1.2e6, BaselineJ: 5e6},
		Node: epdapi.Saving{Runs: 20, SavedJ: -5e4, LowJ: -1e5, HighJ: 1e4, BaselineJ: 7e6},
		Constant: &epdapi.ConstantArm{
			GPU:       epdapi.Saving{Runs: 5, SavedJ: 2e5, LowJ: 1e5, HighJ: 3e5, BaselineJ: 1e6},
			Node:      epdapi.Saving{Runs: 4, SavedJ: 1e5, LowJ: 0, HighJ: 2e5, BaselineJ: 2e6},
			AddedGPU:  epdapi.AddedSaving{Runs: 29, SavedJ: 4e5, LowJ: 3e5, HighJ: 5e5, BaselineJ: 4e6},
			AddedNode: epdapi.AddedSaving{Runs: 19, SavedJ: -1e4, LowJ: -2e4, HighJ: 1e4, BaselineJ: 6e6},
		},
	}, nil
}

func steering(context.Context) metrics.Steering {
	return metrics.Steering{Wakes: 4}
}

func plan(context.Context) (live.Plan, bool) {
	return live.Plan{
		Jobs: make([]live.PlannedJob, 3), Without: 2, EnergyJ: 4e6, At: time.Unix(1_700_000_000, 0), TookS: 0.5,
		Stale: "it is old",
		Record: live.PlanRecord{
			Made: 9, Failed: 1, Ended: 5, PlannedJ: 1000, MeasuredJ: 1100, Longer: 2,
			Starts: map[live.PlanKept]int64{live.KeptAsPlanned: 6, live.KeptEarlier: 1},
		},
	}, true
}

func power(context.Context) epdapi.ClusterPower {
	return epdapi.ClusterPower{GPUW: 1234.5, GPUs: 8, Nodes: 2, Silent: 1, Oldest: 12}
}

func agent(context.Context) metrics.Agent {
	return metrics.Agent{
		Runs: 1, Journal: 2, Waiting: 3, Aside: 4, Trouble: 5, Adapted: 1, Steps: 6, Guarded: 7,
		GPUs: []metrics.GPU{
			{
				UUID: "GPU-1", Model: "NVIDIA H200", Partition: "gpu", Read: true, Power: 350,
				Clocks: dvfsmodel.Setting{Core: 1200, Mem: 2619}, Utilisation: 0.5,
				Locked: dvfsmodel.Setting{Core: 1200}, Limit: 500, Share: 450,
			},
			{
				UUID: "GPU-2", Model: "NVIDIA H200", Read: true, Power: 70,
				Clocks: dvfsmodel.Setting{Core: 345, Mem: 2619},
			},
			{UUID: "GPU-3", Model: "NVIDIA H200", Stuck: true, Alien: true},
		},
	}
}

// whole returns an epd of both roles in which something of everything happened.
func whole() *metrics.Metrics {
	m := metrics.New(metrics.Sources{
		Version: "v1.2", Role: "both", Controller: controller, Savings: savings, Agent: agent,
		Steering: steering, Power: power, Plan: plan,
	})
	m.Took(metrics.Decide, 90*time.Microsecond)
	m.Took("no such request", time.Hour)
	m.Decided(metrics.DecisionLabels{Mode: "enforce", Arm: "treated", Applied: true})
	m.Decided(metrics.DecisionLabels{Mode: "enforce", Arm: "held-out"})
	gpu, node := 5e5, 9e5
	m.Recorded(metrics.RunEnergy{
		Partition: "gpu", GPUModel: "NVIDIA H200", Arm: "treated", GPU: &gpu, Node: &node,
	})
	m.Failed("munge-expired")
	m.Failed("munge-expired")
	m.Failed("bad-request")
	return m
}

// told are lines that a scrape of whole has.
const told = `
# TYPE epplan_decisions_applied_total counter
epplan_decisions_applied_total{arm="treated",mode="enforce"} 1
epplan_decisions_total{arm="held-out",mode="enforce"} 1
epplan_decisions_total{arm="treated",mode="enforce"} 1
epplan_run_energy_joules_total{arm="treated",gpu_model="NVIDIA H200",part="gpu",partition="gpu"} 500000
epplan_run_energy_joules_total{arm="treated",gpu_model="NVIDIA H200",part="node",partition="gpu"} 900000
epplan_errors_total{kind="bad-request"} 2
epplan_errors_total{kind="munge-expired"} 2
epplan_errors_total{kind="outcome-refused"} 2
epplan_errors_total{kind="record-lost"} 6
epplan_submissions_total 100
epplan_plan_tasks 3
epplan_plan_stale 1
epplan_plan_starts_total{how="as_planned"} 6
epplan_plan_starts_total{how="earlier"} 1
epplan_plan_runs_measured_joules_total 1100
epplan_outcomes_total 50
epplan_outcomes_implausible_total 15
epplan_refits_total 7
epplan_models 4
epplan_models_retired_total 1
epplan_jobs 9
epplan_submissions_waiting 2
epplan_runs_decided 3
epplan_records_unwritten 5
epplan_records_trouble 1
epplan_holdout_ratio 0.05
epplan_errors_total{kind="code-server"} 4
epplan_prediction_learnt_jobs 40
epplan_prediction_missed_total 1
epplan_prediction_jobs{rung="any",target="time"} 9
epplan_prediction_coverage_ratio{rung="any",target="time"} 0.875
epplan_config_info{version="a1b2c3"} 1
epplan_slurm_sync_timestamp_seconds{what="jobs"} 1.7000000005e+09
epplan_slurm_sync_failures{what="nodes"} 3
epplan_saved_energy_joules{part="gpu"} 1e+06
epplan_saved_energy_joules{part="node"} -50000
epplan_saved_energy_low_joules{part="gpu"} 800000
epplan_saved_energy_high_joules{part="gpu"} 1.2e+06
epplan_saved_energy_baseline_joules{part="node"} 7e+06
epplan_saved_energy_runs{part="gpu"} 30
epplan_footprint_per_joule{unit="EUR",what="cost"} 1.5e-07
epplan_footprint_per_joule{unit="g",what="carbon"} 0.00015
epplan_gpus 3
epplan_journal_entries 2
epplan_runs_open 1
epplan_runs_adapted 1
epplan_clock_steps_total 6
epplan_guard_acts_total 7
epplan_outcomes_waiting 3
epplan_outcomes_aside 4
epplan_agent_troubles_total 5
epplan_gpu_utilisation_ratio{gpu="GPU-1",gpu_model="NVIDIA H200"} 0.5
epplan_gpu_clock_hertz{domain="core",gpu="GPU-1",gpu_model="NVIDIA H200"} 1.2e+09
epplan_gpu_clock_hertz{domain="memory",gpu="GPU-2",gpu_model="NVIDIA H200"} 2.619e+09
epplan_gpu_locked_clock_hertz{domain="core",gpu="GPU-1",gpu_model="NVIDIA H200"} 1.2e+09
epplan_gpu_locked_clock_hertz{domain="core",gpu="GPU-3",gpu_model="NVIDIA H200"} 0
epplan_gpu_stuck{gpu="GPU-3",gpu_model="NVIDIA H200"} 1
epplan_gpu_power_limit_watts{gpu="GPU-1",gpu_model="NVIDIA H200"} 500
epplan_gpu_budget_watts{gpu="GPU-1",gpu_model="NVIDIA H200"} 450
epplan_gpu_alien{gpu="GPU-3",gpu_model="NVIDIA H200"} 1
epplan_partition_power_watts{gpu_model="NVIDIA H200",partition="gpu"} 350
epplan_partition_power_watts{gpu_model="NVIDIA H200",partition="(none)"} 70
epplan_request_duration_seconds_bucket{request="decide",le="5e-05"} 0
epplan_request_duration_seconds_bucket{request="decide",le="0.0001"} 1
epplan_request_duration_seconds_count{request="decide"} 1
epplan_request_duration_seconds_count{request="prolog"} 0
`

func TestTheMetricsAreWhatTheSourcesSay(t *testing.T) {
	got := scrape(t, whole())
	for line := range strings.Lines(told) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	for _, no := range []string{`epplan_gpu_utilisation_ratio{gpu="GPU-3"`, "no such", `what="water"`} {
		if strings.Contains(got, no) {
			t.Errorf("there is %s", no)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// scrape returns what a Prometheus gets.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v: %s", w.Code, err, body)
	}
	return string(body)
}

func TestNamesFollowPrometheusConventions(t *testing.T) {
	problems, err := testutil.GatherAndLint(whole().Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// series returns the series of epplan's own metrics, by name.
func series(tb testing.TB, m *metrics.Metrics) map[string][]map[string]string {
	tb.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		tb.Fatal(err)
	}
	all := make(map[string][]map[string]string)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "epplan_") {
			continue
		}
		for _, s := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range s.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			all[f.GetName()] = append(all[f.GetName()], labels)
		}
	}
	return all
}

func TestEachRoleHasItsOwnMetrics(t *testing.T) {
	for role, s := range map[string]metrics.Sources{
		"neither":    {},
		"agent":      {Agent: agent},
		"controller": {Controller: controller, Savings: savings},
	} {
		t.Run(role, func(t *testing.T) {
			m := metrics.New(s)
			m.Decided(metrics.DecisionLabels{Mode: "observe", Arm: "excluded"})
			m.Recorded(metrics.RunEnergy{})
			m.Failed("any")
			all := series(t, m)
			for name, role := range map[string]bool{
				"epplan_build_info": true, "epplan_errors_total": true,
				"epplan_gpus": s.Agent != nil, "epplan_gpu_stuck": s.Agent != nil,
				"epplan_models": s.Controller != nil, "epplan_decisions_total": s.Controller != nil,
				"epplan_saved_energy_joules": s.Savings != nil,
			} {
				if got := len(all[name]) > 0; got != role {
					t.Errorf("%s: %v, want %v", name, got, role)
				}
			}
		})
	}
}

func TestNoLabelNamesAJobOrAUser(t *testing.T) {
	allowed := []string{
		"version", "goversion", "role", "request", "kind", "mode", "arm", "part", "partition", "gpu",
		"gpu_model", "domain", "what", "target", "rung", "lever", "how", "reason", "scope",
		"unit",
	}
	for name, all := range series(t, whole()) {
		for _, labels := range all {
			for label := range labels {
				if !slices.Contains(allowed, label) {
					t.Errorf("%s has label %s", name, label)
				}
			}
		}
	}
}

func TestHostileNamesAreCleanedAndBounded(t *testing.T) {
	hostile := []string{
		"", "\xff\xfe", "a\nb", "a\"} 1\nepplan_gpus 7", "\x00", strings.Repeat("ä", 5000), "\u202eevil",
		"e\u200bvil", "{}", `\`, "naïve",
	}
	gpus := make([]metrics.GPU, 0, 5000+2*len(hostile))
	for i := range 5000 {
		bad := fmt.Sprintf("%s%d", hostile[i%len(hostile)], i)
		gpus = append(gpus, metrics.GPU{UUID: bad, Model: bad, Partition: bad, Read: true, Power: 1})
	}
	for _, bad := range hostile { // the same again, and the same one cleaned
		gpus = append(gpus, metrics.GPU{UUID: bad, Model: bad, Partition: bad, Read: true, Power: 1})
		gpus = append(gpus, metrics.GPU{UUID: bad, Model: bad, Partition: bad, Read: true, Power: 1})
	}
	m := metrics.New(metrics.Sources{
		Version: "\xff", Role: "\n", Controller: controller, Savings: savings,
		Agent: func(context.Context) metrics.Agent { return metrics.Agent{GPUs: gpus} },
	})
	joules := 1.0
	for i := range 5000 {
		bad := hostile[i%len(hostile)]
		m.Recorded(metrics.RunEnergy{
			Partition: fmt.Sprint(i, bad), GPUModel: fmt.Sprint(bad, i), Arm: bad, GPU: &joules,
			Node: &joules,
		})
		m.Recorded(metrics.RunEnergy{Partition: bad, GPUModel: bad, Arm: "treated", GPU: &joules})
		m.Decided(metrics.DecisionLabels{Mode: bad, Arm: bad, Applied: true})
		m.Failed(fmt.Sprint(bad, i))
	}
	text := scrape(t, m) // every value is UTF-8, no two series are the same
	total := 0
	for name, all := range series(t, m) {
		total += len(all)
		for _, labels := range all {
			for label, value := range labels {
				if len(value) > 3*64 || regexp.MustCompile(`[[:cntrl:]]`).MatchString(value) ||
					strings.ContainsAny(value, "\u202e\u200b") {
					t.Errorf("%s: %s=%q", name, label, value)
				}
			}
		}
	}
	const most = 4000
	if total > most {
		t.Errorf("%d series, at most %d make sense", total, most)
	}
	if strings.Contains(text, "\nepplan_gpus 7") {
		t.Error("a name forges a metric")
	}
	watts, decided := 0.0, 0.0
	for line := range strings.Lines(text) {
		var value float64
		if at := strings.LastIndex(line, " "); at > 0 {
			_, _ = fmt.Sscan(line[at:], &value)
		}
		switch {
		case strings.HasPrefix(line, "epplan_partition_power_watts"):
			watts += value
		case strings.HasPrefix(line, "epplan_decisions_total"):
			decided += value
		}
	}
	if watts != float64(len(gpus)) || decided != 5000 {
		t.Errorf("%v W of %d, %v decisions of 5000", watts, len(gpus), decided)
	}
}

func TestAnyNameCanBeScraped(t *testing.T) {
	var mu sync.Mutex
	var now metrics.Agent
	m := metrics.New(metrics.Sources{Agent: func(context.Context) metrics.Agent {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.OneOf(rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		power := rapid.Float64Range(0, 1000)
		gpus := make([]metrics.GPU, 0, 20)
		for range rapid.IntRange(0, cap(gpus)).Draw(r, "gpus") {
			gpus = append(gpus, metrics.GPU{
				UUID: name.Draw(r, "uuid"), Model: name.Draw(r, "model"),
				Partition: name.Draw(r, "partition"),
				Read:      rapid.Bool().Draw(r, "read"), Power: power.Draw(r, "power"),
			})
		}
		mu.Lock()
		now = metrics.Agent{GPUs: gpus}
		mu.Unlock()
		m.Failed(name.Draw(r, "kind"))
		if _, err := m.Registry().Gather(); err != nil {
			r.Fatal(err)
		}
	})
}

func TestAnEnergyThatMakesNoSenseIsntCounted(t *testing.T) {
	m := metrics.New(metrics.Sources{Controller: controller})
	for _, joules := range []float64{-1, 0, math.NaN(), math.Inf(-1), math.Inf(1)} {
		m.Recorded(metrics.RunEnergy{Partition: "gpu", GPUModel: "H200", Arm: "treated", GPU: &joules})
	}
	m.Recorded(metrics.RunEnergy{Partition: "gpu", GPUModel: "H200", Arm: "treated"})
	if all := series(t, m)["epplan_run_energy_joules_total"]; len(all) > 0 {
		t.Errorf("counted: %v", all)
	}
}

func TestSavingsAreAskedForOnceAMinuteAndMissingWhenUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var fault error
		m := metrics.New(metrics.Sources{Savings: func(ctx context.Context) (epdapi.Savings, error) {
			asked++
			if _, bound := ctx.Deadline(); !bound {
				t.Error("asked without a bound")
			}
			s, _ := savings(ctx)
			return s, fault
		}})
		look := func(wantAsked, wantSeries int) {
			t.Helper()
			got := len(series(t, m)["epplan_saved_energy_joules"])
			if asked != wantAsked || got != wantSeries {
				t.Errorf("asked %d times, %d series; want %d, %d", asked, got, wantAsked, wantSeries)
			}
		}
		look(1, 2)
		look(1, 2)
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble
		fault = errors.New("the database is locked")
		look(2, 0)
		look(2, 0)
		fault = nil
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble
		look(3, 2)
	})
}

func TestScrapesAndCountsGoTogether(t *testing.T) {
	m := whole()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 200 {
				m.Decided(metrics.DecisionLabels{Mode: "advise", Arm: "treated"})
				m.Took(metrics.Submit, time.Millisecond)
				m.Failed(strconv.Itoa(i))
				if i%50 == 0 {
					if _, err := m.Registry().Gather(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if text := scrape(t, m); !strings.Contains(text,
		`epplan_decisions_total{arm="treated",mode="advise"} 800`) {
		t.Error("decisions were lost")
	}
}

func BenchmarkDecided(b *testing.B) {
	m := whole()
	for b.Loop() {
		m.Decided(metrics.DecisionLabels{Mode: "enforce", Arm: "treated", Applied: true})
		m.Took(metrics.Decide, 90*time.Microsecond)
	}
}

func BenchmarkScrape(b *testing.B) {
	m := whole()
	for b.Loop() {
		series(b, m)
	}
}
