package predict

import "math"

// memory is what is remembered of all ended jobs, for one target.
type memory struct {
	target  Target
	tracks  *pastByKey
	drifts  map[hash]*keyDrift
	scatter float64 // mean deviation of repeats from what is usual, in logarithms
	keys    []hash  // of the job at hand
	scratch [2]scratchTrack
}

func newMemory(t Target, s *Settings) *memory {
	return &memory{target: t, tracks: newPastByKey(s), drifts: map[hash]*keyDrift{}}
}

func (m *memory) setCurrent(j *Features) { m.keys = appendKeys(m.keys[:0], j) }

// add remembers a job that ended, which is at hand then.
func (m *memory) add(j *Features, o *Outcome) {
	v := o.ValueOf(m.target)
	if !isUsable(v) {
		return
	}
	m.setCurrent(j)
	v = math.Log(v)
	for _, k := range m.keys {
		m.tracks.add(k, v, o.End, o.Completed)
	}
}

// How many features [memory.appendFeatures] appends of each kind.
const (
	trackFeatures = 9 // for each key: see describe
	timeFeatures  = 3 // hour of the day, day of the week, when the requested time would end within the hour
)

// requestFeatureCount returns how many features say what a job asks for; they come first.
func requestFeatureCount(j *Features) int { return 1 + len(j.Sizes) }

func featureCount(j *Features) int {
	return requestFeatureCount(j) + len(j.Conditions) + timeFeatures +
		trackFeatures*(keyCount+keysPerLabel*len(j.Labels))
}

// appendFeatures appends what the trees are told of the job at hand: what it asks for, when,
// and for each key what is remembered.
func (m *memory) appendFeatures(x []float64, j *Features) []float64 {
	x = append(x, logOf(j.Requested))
	for _, s := range j.Sizes {
		x = append(x, logOf(s))
	}
	x = append(x, j.Conditions...)
	const day, hour = 86400, 3600
	x = append(x, math.Mod(j.Submit, day)/hour, math.Mod(j.Submit/day, 7),
		math.Mod(j.Submit+j.Requested, hour))
	for _, k := range m.keys {
		x = appendTrackFeatures(x, m.tracks.track(k, &m.scratch[0]), j.Submit)
	}
	return x
}

// appendTrackFeatures appends what a track says of its key at a time; NaN where there is none.
func appendTrackFeatures(x []float64, t *track, now float64) []float64 {
	if t == nil {
		nan := math.NaN()
		return append(x, 0, nan, nan, nan, nan, nan, nan, nan, nan)
	}
	return append(x, math.Log1p(float64(t.count)), t.valueBack(0), t.valueBack(1), t.smooth, t.median(),
		t.recentMedian(), t.spread(),
		math.Log1p(max(0, now-t.last)), t.completed)
}

// logOf returns the logarithm of a positive number, else NaN.
func logOf(v float64) float64 {
	if v > 0 {
		return math.Log(v)
	}
	return math.NaN()
}
