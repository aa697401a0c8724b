package taskset

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/policy"
)

// queueType is a job type of the queues for two GPU types, as the means by which
// its runs are predicted.
type queueType struct {
	name    string
	seconds [2]float64 // on A and B; the energy is drawn beside them
	kWh     [2]float64
	work    float64    // mean seconds on B in the coupled energy model
	speed   float64    // of A over B there
	perGPU  [2]float64 // mean kWh of one GPU there
}

func queueTypes() []queueType {
	type pair = [2]float64
	return []queueType{
		{"bert", pair{68369, 73773}, pair{2.89352, 1.06495}, 98819, 1.939, pair{4.234, 4.219}},
		{"diffusion", pair{115459, 109912}, pair{2.79977, 1.52866}, 153313, 1.786, pair{5.954, 5.795}},
		{"gan", pair{163311, 179888}, pair{3.95757, 1.61092}, 237215, 1.969, pair{14.389, 14.919}},
		{"gpt-finetune", pair{119791, 127728}, pair{2.20361, 0.97255}, 166789, 1.651, pair{11.386, 11.112}},
		{"lstm", pair{86081, 87491}, pair{3.85366, 1.95361}, 123982, 1.861, pair{6.627, 6.733}},
		{"resnet", pair{116220, 123120}, pair{4.20965, 2.06918}, 164824, 1.523, pair{6.532, 6.735}},
		{"vgg", pair{51936, 54269}, pair{3.00103, 1.68302}, 70964, 1.846, pair{2.783, 2.904}},
		{"vit", pair{70237, 69689}, pair{4.78299, 2.15887}, 96166, 1.634, pair{5.335, 5.674}},
	}
}

// The arrivals: a Poisson process of so many a day over 62 days, with day and
// night, weekends, and busy spells of one and a half to three and a half days.
const (
	queueDays    = 62
	jobsPerDay   = 1.81
	busyPeriods  = 3
	busyFactor   = 5
	nightSwing   = 0.5
	weekdayRate  = 1.16
	weekendRate  = 0.6
	timeSpread   = 0.35 // of run times, relative
	energySpread = 0.40 // of energies in the independent model
	secondsOfDay = 86400
)

// Queue draws a queue for two GPU types and their numbers of GPUs, like those of
// the PREDICT paper's simulations: predictions are the means of the types.
func Queue(rng *rand.Rand, model trace.EnergyModel) ([]trace.KnapsackJob, trace.KnapsackPool) {
	pool := trace.KnapsackPool{Name: "drawn", GPUs: [2]int{10 + rng.IntN(11), 20 + rng.IntN(21)}}
	types := queueTypes()
	arrivals := queueArrivals(rng)
	jobs := make([]trace.KnapsackJob, 0, len(arrivals))
	for _, at := range arrivals {
		kind := &types[rng.IntN(len(types))]
		job := trace.KnapsackJob{
			ID: strconv.Itoa(len(jobs)), Type: kind.name, Arrival: at, GPUs: queueGPUs(rng),
		}
		kind.predict(rng, model, &job)
		jobs = append(jobs, job)
	}
	return jobs, pool
}

// queueArrivals thins a Poisson process, whole seconds.
func queueArrivals(rng *rand.Rand) []float64 {
	var busy [busyPeriods][2]float64
	for i := range busy {
		length := (1.5 + 2*rng.Float64()) * secondsOfDay
		from := rng.Float64() * (queueDays*secondsOfDay - length)
		busy[i] = [2]float64{from, from + length}
	}
	const most = jobsPerDay / secondsOfDay * busyFactor * (1 + nightSwing) * weekdayRate
	var all []float64
	for t := rng.ExpFloat64() / most; t < queueDays*secondsOfDay; t += rng.ExpFloat64() / most {
		days := t / secondsOfDay
		rate := jobsPerDay / secondsOfDay * (1 + nightSwing*math.Sin(2*math.Pi*(days-0.375)))
		if int(days)%7 >= 5 {
			rate *= weekendRate
		} else {
			rate *= weekdayRate
		}
		for _, spell := range busy {
			if t >= spell[0] && t < spell[1] {
				rate *= busyFactor
				break
			}
		}
		if rng.Float64()*most < rate {
			all = append(all, math.Floor(t))
		}
	}
	return all
}

// queueGPUs draws 1, 2, 4 or 8 GPUs of A, and of B as many or twice as many.
func queueGPUs(rng *rand.Rand) [2]int {
	a := 8
	switch u := rng.Float64(); {
	case u < 0.11:
		a = 1
	case u < 0.33:
		a = 2
	case u < 0.72:
		a = 4
	}
	b := a
	if a < 8 && rng.Float64() < 0.1 {
		b *= 2
	}
	return [2]int{a, b}
}

// predict predicts by the means of the type, or by the work of a usual job of it, and draws
// how the job turns out, in whole seconds.
func (k *queueType) predict(rng *rand.Rand, model trace.EnergyModel, job *trace.KnapsackJob) {
	onB := k.work * float64(job.GPUs[0]) / float64(job.GPUs[1])
	for i, seconds := range [2]float64{k.work / k.speed, onB} {
		job.Forecast[i] = trace.KnapsackRun{Seconds: seconds, KWh: k.perGPU[i] * float64(job.GPUs[0])}
		if model == trace.Independent {
			job.Forecast[i] = trace.KnapsackRun{Seconds: k.seconds[i], KWh: k.kWh[i]}
		}
	}
	job.Actual = DrawOutcome(rng, model, &job.Forecast)
	for i := range job.Actual {
		job.Actual[i].Seconds = max(1, math.Round(job.Actual[i].Seconds))
	}
}

// DrawOutcome draws how a job of a queue for two GPU types turns out that is
// predicted like this: times and energies apart from normal distributions
// without what is below 0, or, in the coupled model, one factor for all of them.
func DrawOutcome(
	rng *rand.Rand, model trace.EnergyModel, forecast *[2]trace.KnapsackRun,
) (runs [2]trace.KnapsackRun) {
	const shortest = 1e-3 // as in queues that are read
	factor := 0.0
	if model == trace.Coupled {
		variance := math.Log(1 + timeSpread*timeSpread)
		factor = math.Exp(math.Sqrt(variance)*rng.NormFloat64() - variance/2)
	}
	for i, mean := range forecast {
		if model == trace.Coupled {
			runs[i] = trace.KnapsackRun{Seconds: factor * mean.Seconds, KWh: factor * mean.KWh}
		} else {
			runs[i] = trace.KnapsackRun{
				Seconds: mean.Seconds * positiveNormal(rng, timeSpread),
				KWh:     mean.KWh * positiveNormal(rng, energySpread),
			}
		}
		runs[i].Seconds = max(shortest, runs[i].Seconds)
	}
	return runs
}

// positiveNormal draws from a normal distribution around 1 until the value is above 0.
func positiveNormal(rng *rand.Rand, spread float64) float64 {
	for {
		if x := 1 + spread*rng.NormFloat64(); x > 0 {
			return x
		}
	}
}

// CoupledQueueParams returns the numbers where a job's energy follows from its run time,
// so that a kWh is worth less waiting, and choices are so much alike that it takes
// more futures to tell them apart.
func CoupledQueueParams() policy.QueueParams {
	q := policy.DefaultQueueParams()
	q.Greedy.Gamma = 1e8
	q.Posted.PerDay, q.Posted.Price, q.Posted.Steepness = 0.2, 0, 1
	q.Look.Futures = 600
	return q
}
