package record

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/epplan/epplan/live"
)

// HistoryJob is a job of a log of the time before epd, or of another cluster: what an
// accounting log says became of it. Ids come again, and a job that is requeued
// is submitted anew, so that cluster, id and submit time together name one.
type HistoryJob struct {
	Cluster string `json:"cluster"` // "" in a request: the controller's own
	// As the log has it: 12, 12_4 of an array, 13+1 of a heterogeneous job.
	JobID     string    `json:"job_id"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"` // zero: it never ran
	Ended     time.Time `json:"ended,omitzero"`   // zero: not known
	User      string    `json:"user,omitempty"`
	Account   string    `json:"account,omitempty"`
	Partition string    `json:"partition,omitempty"`
	QOS       string    `json:"qos,omitempty"`
	Name      []byte    `json:"name,omitempty"` // as the user wrote it: any bytes
	// GPUs, CPUs and Nodes are what it was given, or asked for where it wasn't
	// given any.
	GPUs     live.Number `json:"gpus"`
	CPUs     live.Number `json:"cpus"`
	Nodes    live.Number `json:"nodes"`
	GPUModel string      `json:"gpu_model,omitempty"` // "" is not known
	// Limit is the wall-time limit: seconds, "unlimited", or null where none is known.
	Limit live.Limit `json:"limit_s,omitzero"`
	// State is Slurm's word for how it ended, in upper case: COMPLETED, TIMEOUT.
	State    string      `json:"state"`
	ExitCode live.Number `json:"exit_code"`
	// EnergyJ is what Slurm measured, of whatever it measures: GPUs or whole
	// nodes, by its AcctGatherEnergyType.
	EnergyJ     live.Number `json:"energy_j"`
	Utilisation live.Number `json:"utilisation"` // of its GPUs, mean, 0..1
}

// RunTime returns how long the job ran; unknown if it didn't or that isn't known.
func (p *HistoryJob) RunTime() live.Number {
	if p.Started.IsZero() || p.Ended.IsZero() {
		return live.Number{}
	}
	return live.Known(p.Ended.Sub(p.Started).Seconds())
}

// Canonical returns the job as it is kept: times in microseconds, texts in UTF-8.
// What can't be kept is [ErrInvalid].
func (p *HistoryJob) Canonical() (HistoryJob, error) {
	c := *p
	if c.Cluster == "" || c.JobID == "" || c.Submitted.IsZero() {
		return c, fmt.Errorf("%w: a past job needs cluster, id and submit time", ErrInvalid)
	}
	c.Submitted, c.Started, c.Ended = StoredTime(c.Submitted), StoredTime(c.Started), StoredTime(c.Ended)
	switch {
	case !c.Started.IsZero() && c.Started.Before(c.Submitted):
		return c, fmt.Errorf("%w: past job %q started before it was submitted", ErrInvalid,
			CleanText(c.JobID))
	case !c.Ended.IsZero() && c.Ended.Before(c.Submitted), !c.Ended.IsZero() && c.Ended.Before(c.Started):
		return c, fmt.Errorf("%w: past job %q ended before it started", ErrInvalid, CleanText(c.JobID))
	}
	for _, n := range []live.Number{c.GPUs, c.CPUs, c.Nodes, c.EnergyJ, c.Utilisation} {
		if n.Or(0) < 0 {
			return c, fmt.Errorf("%w: past job %q has a negative size", ErrInvalid, CleanText(c.JobID))
		}
	}
	for _, text := range []*string{
		&c.Cluster, &c.JobID, &c.User, &c.Account, &c.Partition, &c.QOS,
		&c.GPUModel, &c.State,
	} {
		*text = CleanText(*text)
	}
	if c.Name = c.Name[:min(len(c.Name), MaxText)]; len(c.Name) == 0 {
		c.Name = nil
	}
	return c, nil
}

// NameKind returns what the names of one program's jobs have in common: their words, without digits and signs.
// So md_run, md_run_12 and 3-md-run are of one kind. It is "" for a name without a letter.
func NameKind(name []byte) string {
	return strings.Join(strings.FieldsFunc(string(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r)
	}), " ")
}
