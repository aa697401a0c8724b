package forecast

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// predictWait is how long a submission waits for a prediction: what is learnt
// meanwhile takes some microseconds, another model is put in place in a few
// milliseconds. Without one nothing is predicted.
const predictWait = 2 * time.Millisecond

// Job is what is known of a job before it starts, as far as forecasts go by it.
type Job struct {
	UID uint32
	// Where the user names no partition or account, it is those of the user's last job.
	Name, Partition, Account string
	GPUs, Nodes              int
	Limit                    live.Limit // in the GPUs' time
	Source                   string     // the user's script, or name of jobs, as records name it
	Script                   string     // the script's text; "": not known
}

// JobOf returns a submission of so many GPUs, with its limit in the GPUs' time and what names
// its workload.
func JobOf(s *hooks.Submission, gpus int, limit live.Limit, source string) *Job {
	nodes := 1
	if s.MinNodes < slurm.NoVal {
		nodes = int(s.MinNodes)
	}
	return &Job{
		UID: s.UID, Name: string(s.Name), Partition: string(s.Partition), Account: string(s.Account),
		GPUs: gpus, Nodes: nodes, Limit: limit, Source: source, Script: string(s.Script),
	}
}

// featuresOf returns a job for predictions.
func (f *Forecaster) featuresOf(j *Job) *predict.Features {
	u := f.users.get(j.UID)
	if u.name == "" && j.UID > 0 && f.options.UserName != nil {
		f.enqueue(work{uid: j.UID})
	}
	return &predict.Features{
		Submit: float64(f.options.Clock().Unix()), Owner: ownerOf(u.name, j.UID),
		Labels: []string{
			cut(j.Name), cut(cmp.Or(j.Partition, u.partition)), cut(cmp.Or(j.Account, u.account)),
		},
		Sizes: []float64{float64(j.GPUs), float64(max(1, j.Nodes))}, Requested: requestedSeconds(j.Limit),
	}
}

// requestedSeconds returns a limit in seconds; NaN without one.
func requestedSeconds(limit live.Limit) float64 {
	if d, ok := limit.Duration(); ok {
		return d.Seconds()
	}
	return math.NaN()
}

// scriptOf returns a source as predictions know it; 0 for what isn't one.
func scriptOf(source string) uint64 {
	raw, err := hex.DecodeString(source)
	if err != nil || len(raw) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(raw)
}

// Predict returns what a job is expected to take; nil where predictions are off, it has no
// GPUs, or there is no time.
func (f *Forecaster) Predict(j *Job) *epdapi.Forecast {
	if !f.options.Settings().Enabled || j.GPUs <= 0 {
		return nil
	}
	found, ok := f.live.Predict(predictWait, f.featuresOf(j), scriptOf(j.Source))
	if !ok {
		f.counters.missed.Add(1)
		return nil
	}
	out := &epdapi.Forecast{}
	if found[predict.Time].Rung != predict.Repeat {
		f.predictByCode(j, &found, out)
	}
	deriveEnergy(&found, float64(j.GPUs))
	idle, busy := f.options.GPUPower()
	clampForecast(&found, j, idle, busy)
	out.Time, out.Power = predictedRange(&found[predict.Time], 1), predictedRange(&found[predict.Power], 1)
	out.Energy = predictedRange(&found[predict.Energy], dvfsmodel.JoulesPerKWh)
	return out
}

// deriveEnergy makes an energy that nothing is known of from time and power.
func deriveEnergy(f *predict.Forecast, gpus float64) {
	e, t, p := &f[predict.Energy], &f[predict.Time], &f[predict.Power]
	if e.Rung == predict.Prior {
		*e = predict.Prediction{
			Value: t.Value * p.Value * gpus / dvfsmodel.JoulesPerKWh,
			Low:   t.Low * p.Low * gpus / dvfsmodel.JoulesPerKWh,
			High:  t.High * p.High * gpus / dvfsmodel.JoulesPerKWh,
			Rung:  predict.Prior,
		}
	}
}

func predictedRange(p *predict.Prediction, unit float64) epdapi.PredictedRange {
	return epdapi.PredictedRange{
		Value: p.Value * unit, Low: p.Low * unit, High: p.High * unit, Rung: string(p.Rung),
	}
}

// Note puts a forecast into the record of a submission: how it turned out is
// counted when the job ended.
func Note(f *epdapi.Forecast, into *record.Decision) {
	if f == nil {
		return
	}
	into.TimeS, into.EnergyJ, into.PowerW = interval(&f.Time), interval(&f.Energy), interval(&f.Power)
	into.Rung = basisText(f)
}

func interval(p *epdapi.PredictedRange) record.Interval {
	return record.Interval{
		Value: live.Known(p.Value), Low: live.Known(p.Low), High: live.Known(p.High),
	}
}

// basisText returns what a forecast rests on, that of time, energy and power apart where
// they differ.
func basisText(f *epdapi.Forecast) string {
	if f.Energy.Rung == f.Time.Rung && f.Power.Rung == f.Time.Rung {
		return f.Time.Rung
	}
	return strings.Join([]string{f.Time.Rung, f.Energy.Rung, f.Power.Rung}, "/")
}

// basesOf returns the reverse of basisText.
func basesOf(text string) (rungs [predict.Power + 1]string) {
	parts := strings.Split(text, "/")
	for t := range rungs {
		rungs[t] = parts[min(t, len(parts)-1)]
	}
	return rungs
}
