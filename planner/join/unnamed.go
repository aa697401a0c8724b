package join

import (
	"fmt"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// UnnamedError tells that jobs of a log don't say on which GPU model they ran, and several may be meant.
type UnnamedError struct {
	Jobs, Of int
	Models   []string // of the cluster
}

// Error says how many there are, and what the cluster has.
func (e *UnnamedError) Error() string {
	return fmt.Sprintf("%d of %d jobs don't say on which GPU model they ran, and the cluster has %s",
		e.Jobs, e.Of, andText(e.Models, "and"))
}

// Ways says what whoever replays the log can state.
func (e *UnnamedError) Ways() string {
	return "--runtime-gpu-model MODEL says it for all of them, partitions in [[cluster.nodes]] by the " +
		"partition of a job; with --speed " + e.Models[0] + "=1," + e.Models[len(e.Models)-1] +
		"=FACTOR they may run on other GPU models too; --runtime-gpu-model '*' takes them to run as long on all GPU models"
}

// Unnamed plans jobs of a log that doesn't say on which GPU model they ran.
type Unnamed struct {
	cluster *planner.Cluster
	models  []string           // GPU models of the cluster, by name
	on      string             // where such jobs ran; empty: nobody says
	times   map[string]float64 // run time by GPU model, as a multiple of that on the model where they ran
	left    int                // jobs of which nobody says it
}

// NewUnnamed plans such jobs as if they had run on a GPU model, [queue.AnyModel] for as long on all, by how
// fast GPU models are. All are named as in the cluster.
func NewUnnamed(cluster *planner.Cluster, on string, speeds []queue.Speed) *Unnamed {
	u := &Unnamed{cluster: cluster, on: on}
	for i := range cluster.Classes {
		if model := cluster.Classes[i].Model; !slices.Contains(u.models, model) {
			u.models = append(u.models, model)
		}
	}
	slices.Sort(u.models)
	own := slices.IndexFunc(speeds, func(s queue.Speed) bool { return s.Model == on })
	if own < 0 {
		return u
	}
	u.times = make(map[string]float64)
	for _, s := range speeds {
		if slices.Contains(u.models, s.Model) {
			u.times[s.Model] = speeds[own].Factor / s.Factor
		}
	}
	return u
}

// Model returns the GPU model on which a job of a partition ran and is planned; empty: it may be any.
func (u *Unnamed) Model(partition string) string {
	if len(u.models) == 1 {
		return ""
	}
	model := ""
	for i := range u.cluster.Classes {
		if k := &u.cluster.Classes[i]; slices.Contains(k.Partitions, partition) {
			if model != "" && model != k.Model {
				model = ""
				break
			}
			model = k.Model
		}
	}
	if model == "" && u.times == nil && u.on != queue.AnyModel {
		return u.on
	}
	return model
}

// Take has a job that names no GPU model run where that is known, and for how long; the warning says that
// nobody measured the job there, by the name that the log has for it. Not ok: nobody says where it ran.
func (u *Unnamed) Take(job *queue.Job, name string) (ok bool, warning error) {
	switch {
	case len(u.models) == 1:
		return true, nil
	case u.on == "":
		u.left++
		return false, nil
	}
	how := "as long assumed"
	if u.times != nil {
		how = "by the stated speeds"
		count := job.GPUs[0].Count
		job.GPUs = job.GPUs[:0:0]
		for _, model := range u.models {
			if factor, known := u.times[model]; known {
				job.GPUs = append(job.GPUs, queue.GPUCount{Model: model, Count: count})
				job.Measured = append(job.Measured, queue.Measured{Model: model, Runtime: job.Runtime * factor})
			}
		}
	}
	var where []string
	for _, model := range u.models {
		if _, known := u.times[model]; u.times == nil || known && model != u.on {
			where = append(where, model)
		}
	}
	return true, &queue.Warning{
		Kind: queue.WarnRunTime, Job: name, Weight: job.Runtime,
		Err: fmt.Errorf("%s: job %q doesn't say on which GPU model it ran: %s on %s", job.Pos, name, how,
			andText(where, "and")),
	}
}

// Err returns an [UnnamedError] if it isn't known of some jobs where they ran, of so many of the log.
func (u *Unnamed) Err(of int) error {
	if u.left == 0 {
		return nil
	}
	return &UnnamedError{Jobs: u.left, Of: of, Models: u.models}
}
