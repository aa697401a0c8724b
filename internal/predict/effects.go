package predict

import "slices"

const (
	sweeps            = 100  // over all effects
	maxGroupValues    = 20   // the latest ones of a cell that count
	maxResidual       = 4.0  // logarithm: cells farther from the line are taken for this far
	initialVariance   = 0.2  // of effects, and of what they leave: the guess to begin with
	minEffectVariance = 1e-4 // variance
	minNoiseVariance  = 1e-3 // variance
)

// effects are what an owner, a name, a size add to a line of what a job asks for,
// whatever else the job is: crossed random effects. Each is drawn to 0, the more the
// less is known of it and the less its kind matters. They say most of combinations
// that were never seen, of parts that were.
type effects struct {
	line   *linearModel
	offset float64
	parts  []keyEffects
}

type keyEffects struct {
	key    int
	levels map[hash]float64
}

func effectKeys(labels int) []int {
	out := append(make([]int, 0, 4+labels*keysPerLabel), byOwner, bySizes, byOwnerSize, byOwnerTime)
	for i := range labels * keysPerLabel {
		out = append(out, keyCount+i)
	}
	return out
}

// identicalJobs is jobs that are alike in all respects: one of them says as much as many.
type identicalJobs struct {
	keys   []hash
	job    *PendingJob
	values []float64
}

// groupIdentical puts jobs into cells, in the order of their first ones.
func groupIdentical(rows []*PendingJob) []identicalJobs {
	at := make(map[hash]int, len(rows))
	var out []identicalJobs
	var keys []hash
	for _, t := range rows {
		keys = appendKeys(keys[:0], t.Job)
		i, known := at[keys[byAll]]
		if !known {
			i = len(out)
			at[keys[byAll]] = i
			out = append(out, identicalJobs{keys: slices.Clone(keys), job: t})
		}
		out[i].values = append(out[i].values, t.truth)
	}
	return out
}

// medianValue returns a cell's median over its latest runs.
func (c *identicalJobs) medianValue() float64 {
	return medianOf(slices.Sorted(slices.Values(c.values[max(0, len(c.values)-maxGroupValues):])))
}

// backfitting is a fit of effects on its way.
type backfitting struct {
	rest  []float64 // by cell: what effects leave
	noise float64   // variance of that
	parts []fitPart
}

type fitPart struct {
	level    []int // by cell
	keys     []hash
	effects  []float64 // by level
	variance float64
}

// fitEffects fits effects to what a line leaves: each in turn to what the others
// leave, and their variances by expectation and maximisation.
func fitEffects(rows []*PendingJob, l *linearModel) *effects {
	all := groupIdentical(rows)
	e := &effects{line: l}
	b := &backfitting{rest: make([]float64, len(all)), noise: initialVariance}
	for i := range all {
		b.rest[i] = all[i].medianValue() - l.value(all[i].job.features)
		e.offset += b.rest[i] / float64(len(all))
	}
	for i := range b.rest {
		b.rest[i] = max(-maxResidual, min(maxResidual, b.rest[i]-e.offset))
	}
	respects := effectKeys(len(rows[0].Job.Labels))
	for _, r := range respects {
		b.parts = append(b.parts, levelsOf(all, r))
	}
	for range sweeps {
		for p := range b.parts {
			b.update(&b.parts[p])
		}
		b.noise = 0
		for _, r := range b.rest {
			b.noise += r * r / float64(len(b.rest))
		}
		b.noise = max(minNoiseVariance, b.noise)
	}
	for p, r := range respects {
		f := keyEffects{key: r, levels: make(map[hash]float64, len(b.parts[p].keys))}
		for i, k := range b.parts[p].keys {
			f.levels[k] = b.parts[p].effects[i]
		}
		e.parts = append(e.parts, f)
	}
	return e
}

// levelsOf sorts cells by their keys in a respect, without effects yet.
func levelsOf(all []identicalJobs, respect int) fitPart {
	f := fitPart{level: make([]int, len(all)), variance: initialVariance}
	at := map[hash]int{}
	for i := range all {
		k := all[i].keys[respect]
		level, known := at[k]
		if !known {
			level = len(f.keys)
			at[k], f.keys = level, append(f.keys, k)
		}
		f.level[i] = level
	}
	f.effects = make([]float64, len(f.keys))
	return f
}

// update fits the effects of one respect to what all others leave.
func (b *backfitting) update(f *fitPart) {
	sum, count := make([]float64, len(f.keys)), make([]float64, len(f.keys))
	for i, level := range f.level {
		b.rest[i] += f.effects[level]
		sum[level] += b.rest[i]
		count[level]++
	}
	shrink, total := b.noise/f.variance, 0.0
	for level := range f.effects {
		v := sum[level] / (count[level] + shrink)
		f.effects[level] = v
		total += v*v + b.noise/(count[level]+shrink)
	}
	f.variance = max(minEffectVariance, total/float64(len(f.effects)))
	for i, level := range f.level {
		b.rest[i] -= f.effects[level]
	}
}

// value returns what line and effects say of a job with some keys.
func (e *effects) value(t *PendingJob, keys []hash) float64 {
	v := e.line.value(t.features) + e.offset
	for i := range e.parts {
		v += e.parts[i].levels[keys[e.parts[i].key]]
	}
	return v
}
