package predict

import "slices"

const (
	sweeps       = 100  // over all effects
	cellValues   = 20   // the latest ones of a cell that count
	farOff       = 4.0  // logarithm: cells farther from the line are taken for this far
	firstVar     = 0.2  // of effects, and of what they leave: the guess to begin with
	leastEffects = 1e-4 // variance
	leastNoise   = 1e-3 // variance
)

// effects are what an owner, a name, a size add to a line of what a job asks for,
// whatever else the job is: crossed random effects. Each is drawn to 0, the more the
// less is known of it and the less its kind matters. They say most of combinations
// that were never seen, of parts that were.
type effects struct {
	line   *line
	offset float64
	parts  []part
}

// part is the effects of one respect.
type part struct {
	respect int
	levels  map[hash]float64
}

// effectRespects are those that have effects.
func effectRespects(labels int) []int {
	out := append(make([]int, 0, 4+labels*labelRespects), byOwner, byAnySize, byOwnerSize, byOwnerTime)
	for i := range labels * labelRespects {
		out = append(out, respects+i)
	}
	return out
}

// cell is jobs that are alike in all respects: one of them says as much as many.
type cell struct {
	keys   []hash
	job    *Ticket
	values []float64
}

// cells puts jobs into cells, in the order of their first ones.
func cells(rows []*Ticket) []cell {
	at := make(map[hash]int, len(rows))
	var out []cell
	var keys []hash
	for _, t := range rows {
		keys = appendKeys(keys[:0], t.Job)
		i, known := at[keys[byAll]]
		if !known {
			i = len(out)
			at[keys[byAll]] = i
			out = append(out, cell{keys: slices.Clone(keys), job: t})
		}
		out[i].values = append(out[i].values, t.truth)
	}
	return out
}

// value is a cell's median over its latest runs.
func (c *cell) value() float64 {
	return middle(slices.Sorted(slices.Values(c.values[max(0, len(c.values)-cellValues):])))
}

// backfit is a fit of effects on its way.
type backfit struct {
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
func fitEffects(rows []*Ticket, l *line) *effects {
	all := cells(rows)
	e := &effects{line: l}
	b := &backfit{rest: make([]float64, len(all)), noise: firstVar}
	for i := range all {
		b.rest[i] = all[i].value() - l.value(all[i].job.features)
		e.offset += b.rest[i] / float64(len(all))
	}
	for i := range b.rest {
		b.rest[i] = max(-farOff, min(farOff, b.rest[i]-e.offset))
	}
	respects := effectRespects(len(rows[0].Job.Labels))
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
		b.noise = max(leastNoise, b.noise)
	}
	for p, r := range respects {
		f := part{respect: r, levels: make(map[hash]float64, len(b.parts[p].keys))}
		for i, k := range b.parts[p].keys {
			f.levels[k] = b.parts[p].effects[i]
		}
		e.parts = append(e.parts, f)
	}
	return e
}

// levelsOf sorts cells by their keys in a respect, without effects yet.
func levelsOf(all []cell, respect int) fitPart {
	f := fitPart{level: make([]int, len(all)), variance: firstVar}
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
func (b *backfit) update(f *fitPart) {
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
	f.variance = max(leastEffects, total/float64(len(f.effects)))
	for i, level := range f.level {
		b.rest[i] -= f.effects[level]
	}
}

// value is what line and effects say of a job with some keys.
func (e *effects) value(t *Ticket, keys []hash) float64 {
	v := e.line.value(t.features) + e.offset
	for i := range e.parts {
		v += e.parts[i].levels[keys[e.parts[i].respect]]
	}
	return v
}
