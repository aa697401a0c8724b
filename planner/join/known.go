package join

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// RuntimeModelError tells that a job states a run time or a power, may run on several
// GPU models, and says nowhere on which one it was measured.
type RuntimeModelError struct {
	Pos    queue.Position
	Job    string
	Field  string   // of the batch file: runtime_s or power_w
	Models []string // GPU models that it may run on
}

// Error names the job, the models, and what a batch file can say.
func (e *RuntimeModelError) Error() string {
	columns := make([]string, len(e.Models))
	for i, model := range e.Models {
		columns[i] = e.Field + "." + model
	}
	return fmt.Sprintf("%s: job %s may run on %s, and its %s is of one GPU model: want a column "+
		"runtime_gpu_model that names it, or %s",
		e.Pos, queue.Printable(e.Job), strings.Join(e.Models, " or "), e.Field,
		strings.Join(columns, " and "))
}

// Ways says what a batch, or whoever plans it, can state.
func (e *RuntimeModelError) Ways() string {
	return "--runtime-gpu-model MODEL says it for the whole batch, runtime_gpu_model in [cluster] for every " +
		"batch of a site"
}

// knownRun is what is known of how a job runs on a GPU model at default clocks.
type knownRun struct {
	hardware *Hardware
	gpus     int
	nodes    int                // 0: one
	response dvfsmodel.Response // of its workload; nil: it has no model there
	time     float64            // s; 0: unknown
	power    dvfsmodel.Watt     // of one GPU; 0: unknown
	assumed  bool               // the power was neither stated nor modelled
}

// energy is that of the job on all its GPUs, if both are known.
func (k *knownRun) energy() dvfsmodel.Joule {
	return k.power.Over(k.time) * dvfsmodel.Joule(k.gpus)
}

// knownRuns returns what is known of a job on each GPU model that it may run on, by name.
// Those of which nobody knows how long it takes there are left out.
func (j *joiner) knownRuns(job *queue.Job) ([]knownRun, error) {
	if err := j.resolveModels(job); err != nil {
		return nil, err
	}
	var all []knownRun
	for i := range j.hardware {
		h := &j.hardware[i]
		gpus, ok := j.gpusOn(job, h.Name)
		if !ok {
			continue
		}
		k := knownRun{hardware: h, gpus: gpus}
		if job.Model == nil && job.Workload != "" {
			var err error
			if k.response, err = j.catalog.Workload(job.Workload, h.Name); err != nil {
				return nil, fmt.Errorf("%s: job %q: %w", job.Pos, job.ID, err)
			}
		}
		all = append(all, k)
	}
	j.setNodeCounts(job, all)
	if job.Model != nil || len(all) == 0 {
		return all, nil
	}
	if err := j.attribute(job, all); err != nil {
		return nil, err
	}
	j.warnOfPowers(job, all)
	if err := j.fillStated(job, all); err != nil {
		return nil, err
	}
	all = j.withRunTime(job, all)
	j.assumePowers(job, all)
	return all, nil
}

// setNodeCounts says on how many nodes the job runs: as many as it says, or else on one. A
// job that doesn't say and takes more GPUs than any node has gets the fewest nodes of
// a class that hold it in equal parts.
func (j *joiner) setNodeCounts(job *queue.Job, all []knownRun) {
	fits := false
	for i := range all {
		fits = fits || all[i].gpus <= j.widest[all[i].hardware.Name]
	}
	for i := range all {
		switch {
		case job.Nodes > 1:
			all[i].nodes = job.Nodes
		case job.Nodes == 0 && !fits:
			all[i].nodes = j.fewestNodes(job, &all[i])
		}
	}
}

// fewestNodes returns the least number of nodes of a class that hold a job in equal parts; 0
// where none do.
func (j *joiner) fewestNodes(job *queue.Job, k *knownRun) int {
	t := planner.Task{CPUs: job.CPUs, MemGiB: job.MemGiB, Options: []planner.Option{{GPUs: k.gpus}}}
	o := &t.Options[0]
	for o.Nodes = 2; o.Nodes <= k.gpus; o.Nodes++ {
		for i := range j.cluster.Classes {
			if class := &j.cluster.Classes[i]; k.gpus%o.Nodes == 0 && class.Model == k.hardware.Name &&
				class.HasRoom(&t, 0) {
				return o.Nodes
			}
		}
	}
	return 0
}

// attribute says which GPU model the job's run time and power are of, where it can run
// on one only. Where there are several it is an error if nobody said.
func (j *joiner) attribute(job *queue.Job, all []knownRun) error {
	if j.measuredOn != "" {
		return nil
	}
	var wide []string // GPU models whose nodes have enough GPUs
	for i := range all {
		if h := all[i].hardware; all[i].gpus <= j.widest[h.Name]*max(1, all[i].nodes) {
			wide = append(wide, h.Name)
		}
	}
	if len(all) == 1 {
		wide = []string{all[0].hardware.Name}
	}
	if len(wide) == 1 {
		j.measuredOn = wide[0]
		return nil
	}
	for _, f := range [...]struct {
		name   string
		stated float64
	}{{"runtime_s", job.Runtime}, {"power_w", job.Power}} {
		if f.stated > 0 && len(wide) > 0 {
			return &RuntimeModelError{Pos: job.Pos, Job: job.ID, Field: f.name, Models: wide}
		}
	}
	j.measuredOn = queue.AnyModel
	return nil
}

// statedOn returns what the job says of itself on a GPU model; 0: nothing.
func (j *joiner) statedOn(job *queue.Job, model string) (time float64, power dvfsmodel.Watt) {
	for i := range j.measured {
		if m := &j.measured[i]; m.Model == model {
			time, power = m.Runtime, dvfsmodel.Watt(m.Power)
		}
	}
	if j.measuredOn == model || j.measuredOn == queue.AnyModel {
		time, power = cmp.Or(time, job.Runtime), cmp.Or(power, dvfsmodel.Watt(job.Power))
	}
	if idle, most := j.limits.of(model); power < idle/IdleSpread || power > most {
		power = 0
	}
	return time, power
}

// fillStated fills in what the job says of itself, and what follows from that by its
// workload's models: on further GPU models as many repetitions run, and it takes
// the same part of the power.
func (j *joiner) fillStated(job *queue.Job, all []knownRun) error {
	times, powers, err := j.factors(job)
	if err != nil {
		return err
	}
	for i := range all {
		k := &all[i]
		k.time, k.power = j.statedOn(job, k.hardware.Name)
		if k.response == nil {
			continue
		}
		at := k.response.Default()
		switch {
		case k.time > 0:
		case times > 0:
			k.time = at.Time * times
		case !job.HasRunTime():
			k.time = at.Time
			if j.someTimes { // its cell may have been forgotten
				j.warn(job, queue.WarnNoRunTime, k.time, " states no run time, as others do: %.4g s taken, those of the "+
					"measurements of %q on %s", k.time, job.Workload, k.hardware.Name)
			}
		}
		if k.power > 0 {
			j.warnIfContradicted(job, k)
		} else {
			k.power = at.Power * dvfsmodel.Watt(powers)
		}
	}
	return nil
}

// statedRun is a GPU model on which the job says what it takes, and its workload has a
// model beside it.
type statedRun struct {
	model       string
	time, power float64 // stated over modelled; 0: not stated
}

// statedRuns returns those GPU models: the one that the run time is of, or all that there are
// where it is of any, and those that the job was measured on.
func (j *joiner) statedRuns(job *queue.Job) ([]statedRun, error) {
	if job.Workload == "" {
		return nil, nil
	}
	models := make([]string, 0, len(j.measured)+1)
	switch j.measuredOn {
	case "", queue.AnyModel:
		for i := range j.hardware {
			models = append(models, j.hardware[i].Name)
		}
	default:
		models = append(models, j.measuredOn)
	}
	for i := range j.measured {
		if !slices.Contains(models, j.measured[i].Model) {
			models = append(models, j.measured[i].Model)
		}
	}
	var all []statedRun
	for _, model := range models {
		time, power := j.statedOn(job, model)
		if time == 0 && power == 0 {
			continue
		}
		response, err := j.catalog.Workload(job.Workload, model)
		if err != nil {
			return nil, fmt.Errorf("%s: job %q: %w", job.Pos, job.ID, err)
		}
		if response != nil {
			at := response.Default()
			all = append(all, statedRun{model: model, time: time / at.Time, power: float64(power / at.Power)})
		}
	}
	return all, nil
}

// factors returns how many times as long, and with how much more power, the job runs than
// its workload's models have it: by the geometric mean over its anchors. A factor is 0
// or 1 where nothing was measured with a model beside it.
func (j *joiner) factors(job *queue.Job) (times, powers float64, err error) {
	if job.Workload == "" {
		return 0, 1, nil
	}
	all, err := j.statedRuns(job)
	if err != nil {
		return 0, 0, err
	}
	times, powers = 1, 1
	n, m := 0, 0
	for i := range all {
		if all[i].time > 0 {
			times, n = times*all[i].time, n+1
		}
		if all[i].power > 0 {
			powers, m = powers*all[i].power, m+1
		}
	}
	if n == 0 {
		times = 0
	}
	return math.Pow(times, 1/float64(max(n, 1))), math.Pow(powers, 1/float64(max(m, 1))), nil
}

// A stated power contradicts a modelled one if it is further off than 19 of 20 truths
// are, by the model's error: no less than minPowerFactor, and maxPowerFactor where nobody knows
// the error.
const (
	minPowerFactor = 1.05
	maxPowerFactor = 1.25
)

// warnIfContradicted warns where the job states another power than its workload's model.
func (j *joiner) warnIfContradicted(job *queue.Job, k *knownRun) {
	modelled, much := k.response.Default().Power, maxPowerFactor
	if d := j.catalog.Uncertainty(job.Workload, k.hardware.Name); d != nil {
		much = max(minPowerFactor, math.Exp(dvfsmodel.UpperSigmas*d.Level.Power))
	}
	if f := float64(k.power / modelled); f > much || f < 1/much {
		j.warn(job, queue.WarnContradiction, math.Abs(math.Log(f)),
			" states %.4g W, the model of %q has %.4g W on %s: %.4g W taken",
			float64(k.power), job.Workload, float64(modelled), k.hardware.Name, float64(k.power))
	}
}

// assumePowers assumes a power where none is known: on each GPU model one by which the job
// takes as much energy as where it takes most, so that no assumption moves it, and at most its board's limit.
func (j *joiner) assumePowers(job *queue.Job, all []knownRun) {
	var known, typical dvfsmodel.Joule
	for i := range all {
		k := &all[i]
		if shared := j.cluster.Sharing; k.power == 0 && job.Profile != nil && shared != nil &&
			j.canShare(k.hardware.Name) {
			k.power = dvfsmodel.Watt(shared.Physics.PowerAt(shared.Physics.Max()))
		}
		if k.power > 0 {
			known = max(known, k.energy())
			continue
		}
		usual := knownRun{gpus: k.gpus, time: k.time, power: k.hardware.Typical}
		typical = max(typical, usual.energy())
	}
	for i := range all {
		k := &all[i]
		if k.power > 0 {
			continue
		}
		k.assumed = true
		k.power = min(dvfsmodel.Watt(float64(cmp.Or(known, typical))/(k.time*float64(k.gpus))),
			j.limits.most(k.hardware.Name))
		j.warn(job, queue.WarnPower, float64(k.power), " has no known power: %.4g W assumed on %s",
			float64(k.power), k.hardware.Name)
	}
}

// option returns the job's response on the GPU model.
func (j *joiner) option(job *queue.Job, k *knownRun) (planner.Option, error) {
	o := planner.Option{
		Model: k.hardware.Name, GPUs: k.gpus, Nodes: k.nodes, Assumed: k.assumed, Caps: k.hardware.Caps,
	}
	switch m := job.Model; {
	case m != nil:
		o.Response = k.hardware.responseTo(*m)
	case k.response != nil:
		o.Response = dvfsmodel.ScaledTo(k.response, k.time, k.power)
		if k.power == k.response.Default().Power {
			o.Response = dvfsmodel.Repeat(k.response, k.time/k.response.Default().Time)
		}
		var err error
		o.Uncertainties, err = j.uncertainModels(job, k)
		return o, err
	case k.hardware.Unseen != nil && job.Profile == nil:
		p := j.prior(k.hardware)
		o.Response, o.Prior, o.Uncertainties = dvfsmodel.ScaledTo(p.response, k.time, k.power), true,
			p.uncertainModels(job)
	default:
		at := k.hardware.Default
		at.Time, at.Power, at.Energy = k.time, k.power, k.power.Over(k.time)
		o.Response = &dvfsmodel.Fixed{At: at}
	}
	return o, nil
}

// resolveModels finds the names of the GPU models that the job names: by an alias, too.
func (j *joiner) resolveModels(job *queue.Job) error {
	j.measuredOn, j.measured = job.RuntimeModel, j.measured[:0]
	var err error
	if job.RuntimeModel != "" && job.RuntimeModel != queue.AnyModel {
		if j.measuredOn, err = j.resolveName(job.RuntimeModel); err != nil {
			column := "runtime_gpu_model"
			if len(job.GPUs) == 1 && job.GPUs[0].Model == job.RuntimeModel { // nobody says it apart
				column = "gpu_model"
			}
			return fmt.Errorf("%s: job %q: %s: %w", job.Pos, job.ID, column, err)
		}
	}
	for _, m := range job.Measured {
		alias := m.Model
		if m.Model, err = j.resolveName(alias); err != nil {
			return fmt.Errorf("%s: job %q: runtime_s.%s: %w", job.Pos, job.ID, alias, err)
		}
		for i := range j.measured {
			if j.measured[i].Model == m.Model {
				return fmt.Errorf("%s: job %q states run times on %s twice, by two of its names, want one",
					job.Pos, job.ID, m.Model)
			}
		}
		if j.measuredOn == m.Model && (m.Runtime > 0 && job.Runtime > 0 || m.Power > 0 && job.Power > 0) {
			return fmt.Errorf("%s: job %q states run times on %s twice, one by runtime_gpu_model, want one",
				job.Pos, job.ID, m.Model)
		}
		j.measured = append(j.measured, m)
	}
	return nil
}

// resolveName returns a GPU model's own name, of it or of an alias.
func (j *joiner) resolveName(alias string) (string, error) {
	if name, ok := j.names[alias]; ok {
		return name, nil
	}
	if err := j.unnamed[alias]; err != nil {
		return alias, err
	}
	h, err := j.catalog.Hardware(alias)
	if err != nil {
		j.unnamed[alias] = err
		return alias, err
	}
	j.names[alias] = cmp.Or(h.Name, alias)
	return j.names[alias], nil
}

// gpusOn is [queue.Job.GPUsOn] with aliases.
func (j *joiner) gpusOn(job *queue.Job, model string) (int, bool) {
	for _, g := range job.GPUs {
		if g.Model == "" || g.Model == model {
			continue
		}
		if name, _ := j.resolveName(g.Model); name == model {
			return g.Count, true
		}
	}
	return job.GPUsOn(model)
}
