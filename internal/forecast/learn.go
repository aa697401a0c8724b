package forecast

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store/record"
)

// learnFrom learns from one job or script.
func (f *Forecaster) learnFrom(ctx context.Context, w *work) {
	switch {
	case w.script != nil:
		f.keepFeatures(ctx, w.script)
		return
	case w.uid > 0:
		f.SeeUser(w.uid, cut(f.options.UserName(w.uid)), "", "")
		return
	}
	e, err := f.options.Records.EndedJob(ctx, f.options.Cluster, w.job, w.submitted)
	if err != nil || e.Runs < e.Nodes || e.GPUs <= 0 || wasStopped(e.State) { // other nodes' runs are still to come
		return
	}
	f.tally.add(&e)
	past := pastOf(&e)
	f.live.End(&past)
	if f.live.NeedsTraining() {
		f.TrainSoon()
	}
}

// wasStopped reports whether a job ended, by its state in Slurm's words, as somebody or something else
// stopped it: how long it ran then, and what it used, isn't what it takes. One that failed, or that its time
// limit ended, may do so again: predictions know these apart from jobs that completed (predict.Outcome).
func wasStopped(state string) bool {
	word, _, _ := strings.Cut(state, " ")
	return slices.Contains([]string{
		"CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED", "LAUNCH_FAILED", "REQUEUED",
	}, word)
}

// pastOf returns a job of the records as predictions learn from it.
func pastOf(e *record.EndedJob) predict.Past {
	p := predict.Past{
		Job: predict.Features{
			ID:     pastID(strconv.FormatInt(e.ID, 10), e.Submitted),
			Submit: float64(e.Submitted.Unix()), Owner: e.User,
			Labels:    []string{string(e.Name), e.Partition, e.Account},
			Sizes:     []float64{float64(e.GPUs), float64(max(1, e.Nodes))},
			Requested: requestedSeconds(e.Limit),
		},
		Outcome: predict.Outcome{End: float64(e.Ended.Unix()), Completed: e.Completed, Value: actualValues(e)},
		Script:  scriptOf(e.ScriptHash),
	}
	return p
}

// actualValues returns what an ended job took, by target; NaN where that isn't known.
func actualValues(e *record.EndedJob) [predict.Power + 1]float64 {
	nan := math.NaN()
	took, energy := e.TimeS.Or(nan), e.EnergyJ.Or(nan)
	return [...]float64{
		predict.Time: took, predict.Energy: energy / dvfsmodel.JoulesPerKWh,
		predict.Power: energy / took / float64(max(1, e.GPUs)),
	}
}

// pastID names a job wherever it is known from: Slurm uses numbers again.
func pastID(id string, submitted time.Time) string {
	return id + "@" + strconv.FormatInt(submitted.Unix(), 10)
}

// pastFrom returns a job of an imported log; false for one that teaches nothing. What
// Slurm measured may be whole nodes: only times are learnt from.
func pastFrom(r *record.HistoryJob) (predict.Past, bool) {
	gpus, counted := r.GPUs.Get()
	took, known := r.RunTime().Get()
	if !known || took <= 0 || counted && gpus <= 0 || r.User == "" || wasStopped(r.State) {
		return predict.Past{}, false
	}
	return predict.Past{
		Job: predict.Features{
			ID:     pastID(r.JobID, r.Submitted),
			Submit: float64(r.Submitted.Unix()), Owner: r.User,
			Labels:    []string{cut(string(r.Name)), r.Partition, r.Account},
			Sizes:     []float64{r.GPUs.Or(math.NaN()), max(1, r.Nodes.Or(1))},
			Requested: requestedSeconds(r.Limit),
		},
		Outcome: predict.Outcome{
			End: float64(r.Ended.Unix()), Completed: strings.HasPrefix(r.State, record.Completed),
			Value: [...]float64{predict.Time: took, predict.Energy: math.NaN(), predict.Power: math.NaN()},
		},
	}, true
}

// newest are at most so many jobs, those submitted last.
func newest(all []predict.Past, most int) []predict.Past {
	slices.SortStableFunc(all, func(a, b predict.Past) int { return int(a.Job.Submit - b.Job.Submit) })
	return all[max(0, len(all)-most):]
}

// maxLabel is how many bytes of a name count.
const maxLabel = 256

func cut(text string) string { return text[:min(len(text), maxLabel)] }

// ownerOf names an owner: by number where the name isn't known.
func ownerOf(user string, uid uint32) string {
	if user == "" {
		return "#" + strconv.FormatUint(uint64(uid), 10)
	}
	return user
}
