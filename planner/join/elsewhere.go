package join

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

// ElsewhereError tells that jobs state their run times on GPU models on which they can't run here, and
// nothing says how long they take on those on which they can.
type ElsewhereError struct {
	Pos      queue.Position // of the first such job
	Job      string
	Jobs, Of int      // how many there are, of all
	On       []string // GPU models that the run times are of
	Here     []string // GPU models of the cluster that the jobs may run on
}

// Error names the first job, how many there are, and the GPU models.
func (e *ElsewhereError) Error() string {
	who, on := "job "+queue.Printable(e.Job)+" has its run time", "it"
	if e.Jobs > 1 {
		who = fmt.Sprintf("%d of %d jobs, the first of them %s, have their run times", e.Jobs, e.Of,
			queue.Printable(e.Job))
		on = "they"
	}
	return fmt.Sprintf("%s: %s on %s, where %s can't run here: nothing says how long on %s",
		e.Pos, who, andText(e.On, "and"), on, andText(e.Here, "or"))
}

// Ways says what a batch can state in order to be planned, as one that reads it is told.
func (e *ElsewhereError) Ways() string {
	columns, speeds := make([]string, len(e.Here)), []string{e.On[0] + "=1"}
	for i, model := range e.Here {
		columns[i] = "runtime_s." + model
		if model != e.On[0] {
			speeds = append(speeds, model+"=FACTOR")
		}
	}
	return "state run times by columns " + andText(columns, "and") + ", or how fast GPU models are beside " +
		"each other by --speed " + strings.Join(speeds, ",") + " (gpu_speeds in [cluster]); --runtime-gpu-model '*' " +
		"takes them to be the same on all GPU models"
}

// andText is "a, b and c", or "a".
func andText(names []string, and string) string {
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " " + and + " " + names[last]
	}
	return strings.Join(names, "")
}

// note counts a job whose run time is known elsewhere only.
func (e *ElsewhereError) note(job *queue.Job, on []source, all []knownRun) {
	if e.Jobs++; e.Jobs == 1 {
		e.Pos, e.Job = job.Pos, job.ID
	}
	add := func(list *[]string, model string) {
		if at, known := slices.BinarySearch(*list, model); !known {
			*list = slices.Insert(*list, at, model)
		}
	}
	for i := range on {
		add(&e.On, on[i].model)
	}
	for i := range all {
		add(&e.Here, all[i].hardware.Name)
	}
}

// setSpeeds takes the speeds of GPU models, by their own names.
func (j *joiner) setSpeeds(speeds []queue.Speed) error {
	for _, s := range speeds {
		name, err := j.resolveName(s.Model)
		if err != nil {
			return fmt.Errorf("speed of %s: %w", queue.Printable(s.Model), err)
		}
		if was, twice := j.speeds[name]; twice && was != s.Factor {
			return fmt.Errorf("speed of %s is %v and %v, want one", name, was, s.Factor)
		}
		if j.speeds == nil {
			j.speeds = make(map[string]float64)
		}
		j.speeds[name] = s.Factor
	}
	return nil
}

// source is a GPU model on which it is known how long the job takes.
type source struct {
	model string
	time  float64        // s
	power dvfsmodel.Watt // 0: unknown
}

// sources lists where it is known how long the job takes: what it states of GPU models, also of such as the
// cluster hasn't, and what models of its workload say.
func (j *joiner) sources(job *queue.Job, all []knownRun) []source {
	var list []source
	add := func(model string, time float64, power dvfsmodel.Watt) {
		if time > 0 && !slices.ContainsFunc(list, func(s source) bool { return s.model == model }) {
			list = append(list, source{model, time, power})
		}
	}
	for i := range all {
		add(all[i].hardware.Name, all[i].time, all[i].power)
	}
	if on := j.measuredOn; on != "" && on != queue.AnyModel {
		time, power := j.statedOn(job, on)
		add(on, time, power)
	}
	for i := range j.measured {
		time, power := j.statedOn(job, j.measured[i].Model)
		add(j.measured[i].Model, time, power)
	}
	return list
}

// withRunTime leaves the GPU models on which it is known how long the job takes, or on which that follows
// from a run time elsewhere by what somebody stated of them all. If it is known on none of them, the
// job is counted in j.elsewhere.
func (j *joiner) withRunTime(job *queue.Job, all []knownRun) []knownRun {
	sources := j.sources(job, all)
	if j.speeds != nil {
		for i := range all {
			j.scaleRun(job, &all[i], sources)
		}
	}
	known := slices.DeleteFunc(slices.Clone(all), func(k knownRun) bool { return k.time == 0 })
	switch {
	case len(known) > 0:
		j.warnOfSame(job, known)
		return known
	case len(sources) == 0:
		return nil // of a workload that has no model here
	case !j.sameElsewhere:
		j.elsewhere.note(job, sources, all)
		return nil
	}
	longest := slices.MaxFunc(sources, func(a, b source) int { return cmp.Compare(a.time, b.time) })
	for i := range all {
		j.takeFrom(job, &all[i], &longest, 1, "as long assumed")
	}
	return all
}

// scaleRun takes a run time from a GPU model on which it is known, by how fast both are. Of several it takes
// the one that is the longest here.
func (j *joiner) scaleRun(job *queue.Job, k *knownRun, sources []source) {
	speed := j.speeds[k.hardware.Name]
	if k.time > 0 || speed == 0 {
		return
	}
	var from *source
	factor := 0.0
	for i := range sources {
		s := &sources[i]
		if f := j.speeds[s.model] / speed; f > 0 && (from == nil || s.time*f > from.time*factor) {
			from, factor = s, f
		}
	}
	if from != nil {
		j.takeFrom(job, k, from, factor, fmt.Sprintf("%.4g times as long, at the same power,", factor))
	}
}

// takeFrom takes the run time and the power from another GPU model. No board uses more than its limit.
func (j *joiner) takeFrom(job *queue.Job, k *knownRun, from *source, factor float64, how string) {
	k.time = from.time * factor
	k.power = cmp.Or(k.power, min(from.power, j.limits.most(k.hardware.Name)))
	j.warn(job, queue.WarnRunTime, k.time, " says how long it runs on %s: %s on %s", from.model, how,
		k.hardware.Name)
}

// warnOfSame warns where the job is said to take as long on several GPU models, and no model says more.
func (j *joiner) warnOfSame(job *queue.Job, known []knownRun) {
	if j.measuredOn != queue.AnyModel || job.Runtime == 0 {
		return
	}
	var same []string
	for i := range known {
		if known[i].response == nil && known[i].time == job.Runtime {
			same = append(same, known[i].hardware.Name)
		}
	}
	if len(same) > 1 {
		j.warn(job, queue.WarnRunTime, job.Runtime, " is said to run as long on %s (runtime_gpu_model is *)",
			andText(same, "and"))
	}
}

// MaxUnknownBoardPower is the most power of one GPU that is believed if its board's limit isn't known, in
// watts: no board is sold with more than 1,400 W.
const MaxUnknownBoardPower = 2000

// IdleSpread is how many times less than its model's idle power a GPU may use: in public tables of measurements,
// jobs use a tenth less.
const IdleSpread = 1.25

// powerLimits are the power of an idle GPU and the most that one can use, by GPU model.
type powerLimits struct {
	catalog Catalog
	known   map[string][2]dvfsmodel.Watt
}

// of returns an idle GPU's power and the most that one of the model can use.
func (l powerLimits) of(model string) (idle, most dvfsmodel.Watt) {
	limits, known := l.known[model]
	if !known {
		h, err := l.catalog.Hardware(model)
		if limits = [2]dvfsmodel.Watt{h.IdlePower, h.MaxPower}; err != nil || h.MaxPower == 0 {
			limits[1] = MaxUnknownBoardPower
		}
		l.known[model] = limits
	}
	return limits[0], limits[1]
}

func (l powerLimits) most(model string) dvfsmodel.Watt {
	_, most := l.of(model)
	return most
}

// warnOfPowers warns of stated powers that no board of the GPU model can use while a job runs: they are taken
// for unknown.
func (j *joiner) warnOfPowers(job *queue.Job, all []knownRun) {
	check := func(model string, stated float64, gpus int) {
		idle, highest := j.limits.of(model)
		limit := float64(highest)
		if 0 < stated && stated < float64(idle/IdleSpread) {
			j.warn(job, queue.WarnPowerLimit, float64(idle)/stated, " states %.4g W, and an idle GPU of model %s "+
				"uses %.4g W: taken for unknown; want the mean power of one GPU", stated, model, float64(idle))
		}
		if !(stated > limit) {
			return
		}
		advice := "want the mean power of one GPU"
		most := fmt.Sprintf("a GPU of model %s uses %.4g W at most", model, limit)
		if limit == MaxUnknownBoardPower {
			most = fmt.Sprintf("no GPU uses more than %.4g W", limit)
		}
		if each := stated / float64(gpus); gpus > 1 && each <= limit {
			advice = fmt.Sprintf("of its %d GPUs, each would use %.4g W: power_w is of one GPU", gpus, each)
		}
		j.warn(job, queue.WarnPowerLimit, stated/limit, " states %.4g W, and %s: taken for unknown; %s",
			stated, most, advice)
	}
	gpusOf := func(model string) int {
		for i := range all {
			if all[i].hardware.Name == model {
				return all[i].gpus
			}
		}
		return all[0].gpus
	}
	stated := make([]string, 0, len(all))
	for i := range j.measured {
		m := &j.measured[i]
		if m.Power > 0 {
			check(m.Model, m.Power, gpusOf(m.Model))
			stated = append(stated, m.Model)
		}
	}
	models := []string{j.measuredOn}
	if j.measuredOn == queue.AnyModel {
		models = models[:0]
		for i := range all {
			models = append(models, all[i].hardware.Name)
		}
	}
	for _, model := range models {
		if !slices.Contains(stated, model) {
			check(model, job.Power, gpusOf(model))
		}
	}
}
