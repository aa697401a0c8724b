package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// fakeBegin is when the fake epd's jobs begin.
var fakeBegin = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

const fakeWorkload = "bf7240b6c9ec9104bd17f3c6x2"

// liveSayings are the fake's answers about jobs. Job 4711 is an ordinary one,
// 4712 has a hostile name, 4713 waits; others aren't there.
func liveSayings(mux *http.ServeMux) {
	say := func(pattern string, answer func(*http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v := answer(r)
			if fault, wrong := v.(epdapi.ErrorAnswer); wrong {
				status := http.StatusBadRequest
				if strings.Contains(fault.Error, "not found") {
					status = http.StatusNotFound
				}
				w.WriteHeader(status)
			}
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	say("GET "+epdapi.PathJobs, fakeJobs)
	say("GET "+epdapi.PathJobs+"/{id}", func(r *http.Request) any {
		if view := fakeView(r.PathValue("id")); view != nil {
			return view
		}
		return epdapi.ErrorAnswer{Error: "job " + r.PathValue("id") + ": not found"}
	})
	say("GET "+epdapi.PathSavings, fakeSavings)
	say("GET "+epdapi.PathUsage, fakeUsage)
	say("POST "+epdapi.PathEstimate, fakeEstimate)
	say("POST "+epdapi.PathCode, fakeCode)
	say("GET "+epdapi.PathQueue, func(*http.Request) any { return fakeQueue() })
	say("GET "+epdapi.PathLevers, func(*http.Request) any { return fakeLevers() })
	say("GET "+epdapi.PathProfiles, fakeProfiles)
	say("GET "+epdapi.PathBudget, func(*http.Request) any { return fakeBudgets() })
	say("POST "+epdapi.PathBudget, fakeSetBudget)
	say("POST "+epdapi.PathBudgetCancel, fakeSetBudget)
	say("POST "+epdapi.PathLeversUndo, func(*http.Request) any {
		return epdapi.UndoLeversAnswer{Undone: 3, Waiting: 1}
	})
	say("POST "+epdapi.PathReload, func(*http.Request) any {
		return epdapi.ReloadAnswer{Version: "77aa00c1d2e3", Before: "5f1c09d2a7b3"}
	})
}

// fakeLevers returns a job that waits behind another, and an advice with a hostile
// text.
func fakeLevers() any {
	return epdapi.Levers{Status: steer.Status{
		Shared: fakeShared(),
		Policy: "value", Order: []slurm.JobID{4711, 4713, 4712},
		At: fakeBegin, Nice: 1, Set: 1, Left: []slurm.JobID{4714},
		Notes: []string{"this Slurm can't power nodes down: SuspendProgram isn't set"},
		Advice: []steer.Advice{
			{
				Kind: steer.KindLimit, Job: 4711, UID: 1000, User: "ada", Partition: "gpu",
				Text: "a limit of 40 minutes would do",
			},
			{Kind: steer.KindSleep, Node: "n2", Text: "idle for an hour"},
		},
	}}
}

func fakeJobs(r *http.Request) any {
	page := epdapi.JobPage{Jobs: []epdapi.JobRow{}}
	for _, id := range []string{"4713", "4712", "4711"} {
		v := fakeView(id)
		row := epdapi.JobRow{Job: *v.Job, Runs: len(v.Outcomes)}
		if len(v.Decisions) > 0 {
			d := v.Decisions[0]
			row.Mode, row.Arm, row.Setting = d.Mode, d.Arm, d.Setting
		}
		if len(v.Outcomes) > 0 {
			row.TimeS, row.EnergyJ = v.Outcomes[0].TimeS, v.Outcomes[0].GPUEnergyJ
		}
		state, user := r.URL.Query().Get("state"), r.URL.Query().Get("user")
		if (state == "" || state == row.State) && (user == "" || user == row.User) {
			page.Jobs = append(page.Jobs, row)
		}
	}
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit < len(page.Jobs) {
		page.Jobs, page.Next = page.Jobs[:limit], 17
	}
	return page
}

// fakeView returns a job of the fake's; nil: there is none.
func fakeView(id string) *epdapi.JobView {
	v := &epdapi.JobView{
		Job: &epdapi.Job{
			ID: 4711, Name: "train", User: "ada", Account: "physics", Partition: "gpu",
			State: record.Completed, Submitted: fakeBegin.Add(-time.Minute),
			Nodes: 1, GPUs: 2, Limit: live.LimitOfSeconds(3600), Workload: fakeWorkload, Scripted: true,
		},
		Submission: &record.Decision{
			Mode: "enforce", Reason: "submitted", Created: fakeBegin.Add(-time.Minute),
			Rung:  "repeat/repeat/similar",
			TimeS: record.Interval{Value: live.Known(2460), Low: live.Known(2300), High: live.Known(2700)},
			EnergyJ: record.Interval{
				Value: live.Known(760e3), Low: live.Known(740e3), High: live.Known(850e3),
			},
			PowerW: record.Interval{Value: live.Known(155), Low: live.Known(140), High: live.Known(180)},
		},
		Decisions: []epdapi.Decision{fakeDecision()}, Outcomes: []epdapi.Outcome{fakeOutcome()},
		ConfigVersion: "5f1c09d2a7b3", Objective: epdapi.Objective{EnergyWeight: 1},
	}
	switch id {
	case "47_3": // the same as a task of an array
		v.Job.ArrayID = "47_3"
		fallthrough
	case "4711":
	case "4712":
		v.Job.ID, v.Job.Name, v.Job.User = 4712, "evil\x1b[2J\nJob 1\u202e\u009b\u200b", "eve"
		v.Wishes = &epdapi.Wishes{Warnings: []string{"epplan:\x1b]0;x\a"}}
		v.Decisions[0].Arm, v.Decisions[0].Setting, v.Decisions[0].Chosen = live.ArmHeldOut,
			dvfsmodel.Setting{}, nil
		v.Decisions[0].Reason = "held out at random, to compare with core 1087 MHz\x1b[2J"
		v.Decisions[0].ConfigVersion = "000000000000"
		v.Outcomes[0].ThrottledS = map[string]float64{"thermal\x1b[2J": 12}
	case "4719":
		v.Job.ID = 4719
		v.Decisions[0].Arm, v.Decisions[0].Reason = live.ArmConstant,
			"drawn at random to run at constant clocks, core 1087 MHz: 90% of the GPUs' energy"
	case "4713":
		v.Job.ID, v.Job.State = 4713, string(slurm.Pending)
		v.Decisions, v.Outcomes = []epdapi.Decision{}, []epdapi.Outcome{}
		v.Wishes = &epdapi.Wishes{Deadline: fakeBegin.Add(9 * time.Hour), Warnings: []string{}}
		e := estimateOf(2)
		v.Estimate = &e
	default:
		return nil
	}
	return v
}

func fakePoint(core dvfsmodel.MHz, seconds, watts float64) *epdapi.Point {
	return &epdapi.Point{
		Setting: dvfsmodel.Setting{Core: core, Mem: 877}, TimeS: seconds, LowerS: seconds / 1.1,
		UpperS: seconds * 1.1,
		PowerW: 2 * watts, EnergyJ: 2 * watts * seconds, HostJ: 2 * 50 * seconds,
	}
}

var (
	fakeDefault = fakePoint(1380, 2400, 200)
	fakeChosen  = fakePoint(1087, 2520, 143)
	fakeModel   = &epdapi.Model{Version: 3, Samples: 12, Margin: 0.04, MinCore: 945, MaxCore: 1380}
)

func fakeDecision() epdapi.Decision {
	known := func(x float64) record.Interval { return record.Interval{Value: live.Known(x)} }
	d := epdapi.Decision{
		Decision: record.Decision{
			ID: 5, JobID: 4711, Node: "gpu01", RunID: "R1", Workload: fakeWorkload, GPUModel: "V100",
			Setting: dvfsmodel.Setting{Core: 1087},
			TimeS:   known(fakeChosen.TimeS), PowerW: known(143), EnergyJ: known(fakeChosen.EnergyJ),
			Reason: "core 1087 MHz: 75% of the GPUs' energy (81% with their share of the node) and 105% of " +
				"the time at default clocks, by model version 3 of 12 runs",
			Mode: "enforce", ConfigVersion: "5f1c09d2a7b3", ModelVersion: 3, Arm: live.ArmTreated,
			Created: fakeBegin,
		},
		Model: fakeModel, Default: fakeDefault, Chosen: fakeChosen,
	}
	d.TimeS.High = live.Known(fakeChosen.UpperS)
	return d
}

func fakeOutcome() epdapi.Outcome {
	const took = 2541
	o := epdapi.Outcome{Outcome: record.Outcome{
		RunID: "R1", JobID: 4711, Node: "gpu01", DecisionID: 5, Workload: fakeWorkload, GPUModel: "V100",
		Arm:     live.ArmTreated,
		Started: fakeBegin, Ended: fakeBegin.Add(took * time.Second), GPUs: []string{"GPU-1", "GPU-2"},
		ExitState: record.Completed,
		Setting:   dvfsmodel.Setting{Core: 1087}, TimeS: live.Known(took), GPUEnergyJ: live.Known(731000),
		GPUSource:  record.Counter,
		MeanPowerW: live.Known(287.7), PeakPowerW: live.Known(322), Utilisation: live.Known(0.81),
		PeakMemoryBytes: live.Known(11 << 30),
		Clocks: []live.Residency{
			{Setting: dvfsmodel.Setting{Core: 1087, Mem: 877}, Seconds: 2530},
			{Setting: dvfsmodel.Setting{Core: 1380, Mem: 877}, Seconds: 11},
		},
		ThrottledS: map[string]float64{"power-cap": 3},
	}}
	o.Series.IntervalS = 60
	for i := range 43 {
		v := live.Known(0.5 + 0.5*math.Sin(float64(i)/5))
		if i == 20 {
			v = live.Number{}
		}
		o.Series.Values = append(o.Series.Values, v)
	}
	return o
}

// fakeSavings are certain, or not for a recent time, or nothing for the future.
func fakeSavings(r *http.Request) any {
	s := epdapi.Savings{
		GPU: epdapi.Saving{
			Runs: 420, Against: 23, SavedJ: 72e6, LowJ: 50e6, HighJ: 94e6, BaselineJ: 400e6,
		},
		Node: epdapi.Saving{
			Runs: 420, Against: 23, SavedJ: 60e6, LowJ: 31e6, HighJ: 89e6, BaselineJ: 600e6,
		},
		Time: epdapi.Longer{
			Runs: 420, Against: 23, LongerS: 1.26e5, LowS: 9e4, HighS: 1.62e5, BaselineS: 1.8e6,
		},
		MaxSlowdown: 1.1, MaxSlowdowns: map[string]float64{"long": 1.3, "debug": 1},
		Workloads: 12, Alone: 31, Treated: 611, HeldOut: 40, HoldOut: 0.05,
		TreatedEnded: epdapi.EndingCounts{Ended: 630, Completed: 611},
		HeldOutEnded: epdapi.EndingCounts{Ended: 41, Completed: 40},
		Modelled:     epdapi.ModelledUse{Runs: 598, DefaultJ: 560e6, UsedJ: 441.2e6},
		Factors:      epdapi.Factors{PUE: 1.2, CostPerKWh: 0.25, Currency: "EUR", CarbonPerKWh: 380},
		ByWorkload: []epdapi.WorkloadSaving{
			{
				Workload: "5ca1ab1e5ca1ab1e5ca1ab1ex4",
				GPUModel: "V100",
				Saving: epdapi.Saving{
					Runs: 300, Against: 15, SavedJ: 60e6, LowJ: 45e6, HighJ: 75e6, BaselineJ: 300e6,
				},
				Time: epdapi.Longer{
					Runs:      300,
					Against:   15,
					LongerS:   1.2e5,
					LowS:      1e5,
					HighS:     1.4e5,
					BaselineS: 1.2e6,
				},
				LastJob: epdapi.LastJob{ID: 4711, Name: "resnet50", User: "ada", Partition: "gpu"},
			},
			{
				Workload: "<b>evil", GPUModel: "V100", Saving: epdapi.Saving{
					Runs: 120, Against: 8, SavedJ: 12e6, LowJ: -3e6, HighJ: 27e6, BaselineJ: 100e6, Needed: 9,
				},
			},
		},
	}
	since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	until, errUntil := time.Parse(time.RFC3339, r.URL.Query().Get("until"))
	switch {
	case err == nil && errUntil == nil:
		s.Since, s.Until = since, until
	case err != nil:
	case since.Year() == 2025:
		s.Since, s.Node, s.Factors = since, epdapi.Saving{}, epdapi.Factors{PUE: 1}
		s.GPU = epdapi.Saving{
			Runs: 30, Against: 4, SavedJ: 1e6, LowJ: -2e6, HighJ: 4e6, BaselineJ: 9e6, Needed: 32,
		}
		s.Time = epdapi.Longer{Runs: 30, Against: 4, LongerS: -100, LowS: -400, HighS: 200, BaselineS: 9000}
		s.TreatedEnded.Completed = 500
	case since.Year() == 2024:
		s = epdapi.Savings{
			Since: since, Alone: 3, Treated: 5, HoldOut: 0.05, GPU: epdapi.Saving{Needed: 1},
			Modelled: epdapi.ModelledUse{Runs: 5, DefaultJ: 5e6, UsedJ: 4e6},
		}
	case since.Year() == 2023: // with a constant arm
		s.Since = since
		s.Constant = &epdapi.ConstantArm{
			Part: 0.1, Runs: 44, Ended: epdapi.EndingCounts{Ended: 60, Completed: 44}, GPU: epdapi.Saving{
				Runs: 41, Against: 23, SavedJ: 5.4e6, LowJ: 1.8e6, HighJ: 9e6, BaselineJ: 36e6,
			},
			AddedGPU: epdapi.AddedSaving{
				Runs: 400, Against: 41, SavedJ: 14.4e6, LowJ: -3.6e6, HighJ: 32.4e6,
				BaselineJ: 360e6, Needed: 25,
			},
			Time: epdapi.Longer{Runs: 41, Against: 23, LongerS: 4e3, LowS: 2e3, HighS: 6e3, BaselineS: 2e5},
			AddedTime: epdapi.AddedTime{
				Runs: 400, Against: 41, LongerS: -2e3, LowS: -3e4, HighS: 26e3, BaselineS: 2e6,
			},
		}
	default:
		s.Since = since
	}
	return s
}

// fakeEstimate knows every script that says train. It repeats what it was asked
// as the workload if the comment wants it to.
func fakeEstimate(r *http.Request) any {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return epdapi.ErrorAnswer{Error: err.Error()}
	}
	s, err := hooks.DecodeSubmission(bytes.NewReader(data))
	if err != nil {
		return epdapi.ErrorAnswer{Error: err.Error()}
	}
	code := codeIn(data)
	e := estimateOf(2)
	e.Limited = s.TimeLimit > 0
	if s.Comment == "code" {
		e.Forecast.Time.Rung = fmt.Sprintf("%d files, %d coordinates", code.Files, len(code.Vector))
	}
	if !strings.Contains(string(s.Script), "train") || r.URL.Query().Get("gpu_model") == "A100" {
		e.Known, e.Models, e.Reason = false, []epdapi.EstimateModel{},
			"no run of this very script by this user with 2 GPUs is known"
	}
	if s.Comment != "echo" {
		return e
	}
	e.Workload = strings.Join([]string{
		string(s.Name), string(s.Partition), string(s.TRESPerNode), string(s.TRESPerJob),
		strconv.Itoa(int(s.MinNodes)),
		strconv.Itoa(int(s.TimeLimit)), strconv.Itoa(len(s.Script)),
	}, "|")
	return e
}

// codeIn returns what a request tells of code, nothing without any.
func codeIn(request []byte) epdapi.Code {
	var r struct {
		Code epdapi.Code `json:"code"`
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return epdapi.Code{Files: -1}
	}
	return r.Code
}

// fakeCode wants the text of code at once, and refuses it where it says so.
func fakeCode(r *http.Request) any {
	data, err := io.ReadAll(r.Body)
	code := codeIn(data)
	if err != nil || code.Files < 1 || len(code.Vector) != source.Dimensions ||
		strings.Contains(string(code.Text), "refuse") {
		return epdapi.ErrorAnswer{Error: "code of " + strconv.Itoa(code.Files) + " files"}
	}
	return epdapi.CodeAnswer{Kept: true, WantsText: code.Text == ""}
}

func estimateOf(gpus int) epdapi.Estimate {
	return epdapi.Estimate{
		Workload: fakeWorkload, GPUs: gpus, Known: true, Scripted: true, Mode: "enforce", Limited: true,
		HoldOut: 0.05, ConfigVersion: "5f1c09d2a7b3",
		Factors:  epdapi.Factors{PUE: 1.2, CostPerKWh: 0.25, Currency: "EUR", CarbonPerKWh: 380},
		Forecast: fakeForecast(),
		Models: []epdapi.EstimateModel{
			{
				GPUModel: "V100", Apply: true, Model: fakeModel, Default: fakeDefault, Chosen: fakeChosen,
				Reason: "core 1087 MHz: 75% of the GPUs' energy (81% with their share of the node) and " +
					"105% of the time at default clocks, by model version 3 of 12 runs",
			},
			{
				GPUModel: "A100",
				Reason:   "this workload has no model: run times scatter by more than 50% around any model",
			},
		},
	}
}

func fakeForecast() *epdapi.Forecast {
	return &epdapi.Forecast{
		Time:   epdapi.PredictedRange{Value: 2460, Low: 2300, High: 2700, Rung: "repeat"},
		Energy: epdapi.PredictedRange{Value: 760e3, Low: 690e3, High: 850e3, Rung: "repeat"},
		Power:  epdapi.PredictedRange{Value: 155, Low: 140, High: 180, Rung: "similar"},
	}
}

// fakeQueue has jobs of the demo's workloads, with its models.
func fakeQueue() epdapi.Queue {
	q := epdapi.Queue{At: fakeBegin, Models: fakeModelsText, Nodes: []epdapi.QueueNode{
		{GPUModel: "V100", GPUs: 4, Count: 2}, {GPUModel: "mystery", GPUs: 8, Count: 1},
	}}
	add := func(n int, change func(*epdapi.QueuedJob)) {
		for range n {
			j := epdapi.QueuedJob{
				ID: int64(5000 + len(q.Jobs)), Name: "evil\x1b[2J", User: "ada", Partition: "gpu",
				State: string(slurm.Pending),
				Tasks: 1, Nodes: 1, GPUs: 1, Limit: live.LimitOfSeconds(3 * 3600),
			}
			change(&j)
			q.Jobs = append(q.Jobs, j)
		}
	}
	add(6, func(j *epdapi.QueuedJob) { j.Workload = "known" })
	add(1, func(j *epdapi.QueuedJob) { j.Workload, j.DeadlineS = "known", live.Known(4*3600) })
	add(1, func(j *epdapi.QueuedJob) { j.Workload, j.HandsOff, j.GPUs = "known", true, 2 })
	add(1, func(j *epdapi.QueuedJob) {
		j.Workload, j.Tasks, j.ArrayJob, j.ArrayTasks = "known", 3, j.ID, "3-7:2"
	})
	add(1, func(j *epdapi.QueuedJob) { j.GPUModel = "X1" })
	add(1, func(*epdapi.QueuedJob) {})
	add(1, func(j *epdapi.QueuedJob) { j.Limit = live.Limit{} })
	add(1, func(j *epdapi.QueuedJob) { j.Held, j.Reason = true, "Dependency" })
	add(1, func(j *epdapi.QueuedJob) { j.Nodes, j.GPUs = 2, 8 })
	add(2, func(j *epdapi.QueuedJob) { j.State, j.GPUs, j.EndsS = string(slurm.Running), 2, live.Known(60) })
	q.Nodes = append(q.Nodes, epdapi.QueueNode{GPUModel: "X1", GPUs: 2, Count: 1})
	q.Profiles = "[[gpu]]\nname = \"X1\"\nidle_w = 50\ndefault_core_mhz = 1000\ndefault_mem_mhz = 500\n" +
		"clocks = [{ mem_mhz = [500], core_mhz = [800, 1000] }]\n"
	return q
}

const fakeModelsText = `
[[model]]
workload = "known"
gpu_model = "V100"
form = "paper"
base_core_mhz = 1380
base_mem_mhz = 877
p0_w = 60.0
gamma_w = 20.0
c_w = 150.0
d_s = 5000.0
delta = 0.15
t0_s = 100.0

[[model]]
workload = "elsewhere"
gpu_model = "no such GPU"
form = "paper"
base_core_mhz = 1
base_mem_mhz = 1
p0_w = 60.0
gamma_w = 20.0
c_w = 150.0
d_s = 5000.0
delta = 0.15
t0_s = 100.0
`
