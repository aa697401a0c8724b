package correlate

import "fmt"

// Window is the correlation of the latest samples of a stream of pairs. A
// sample costs O(1) on average, whatever the window, and nothing is ever
// subtracted: the window is two runs of samples, an older one with the moments
// of each of its ends ready, and a newer one that only grows. When the older
// one is used up, the newer one takes its place; what is new is added up when
// the correlation is asked for, each sample once. So the result is as exact
// after a year as after the first sample, also where a value far out has just
// left the window.
//
// It takes 72 bytes for each sample of the window.
type Window struct {
	ends    []moments // ends[i]: of the last i+1 samples of the older run
	older   int       // samples of the older run that are still in the window
	run     []point   // the newer run, of which there are
	newer   int       // so many samples
	counted int       // how many of them are in
	moments moments   // these moments
	origin  point     // what means are measured from
	inverse []float64 // inverse[n] = 1/(n+1)
}

// NewWindow makes an empty window over the latest size samples.
func NewWindow(size int) (*Window, error) {
	if size < 2 {
		return nil, fmt.Errorf("correlate a window of %d samples: at least 2 are needed", size)
	}
	return &Window{ends: make([]moments, size), run: make([]point, size), inverse: reciprocals(size)}, nil
}

func reciprocals(n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = 1 / float64(i+1)
	}
	return all
}

// Add takes the next sample of either series; NaN and infinities are gaps. The
// oldest sample leaves a full window.
func (w *Window) Add(x, y float64) {
	if w.older+w.newer == len(w.ends) {
		if w.older == 0 {
			w.rotate()
		}
		w.older--
	}
	w.run[w.newer] = point{x, y}
	w.newer++
}

// countNewer puts the newer run's samples into its moments, as far as they aren't.
func (w *Window) countNewer() {
	m := w.moments
	for _, p := range w.run[w.counted:w.newer] {
		if !isFinite(p.x) || !isFinite(p.y) {
			continue
		}
		if m.n == 0 && w.older == 0 {
			w.origin = p
		}
		m.add(p.x-w.origin.x, p.y-w.origin.y, w.inverse[int(m.n)])
	}
	w.counted, w.moments = w.newer, m
}

// rotate makes the newer run the older one, with an origin of its own. It is
// moments.add over and over, in variables that stay in registers.
func (w *Window) rotate() {
	var n int
	var meanX, meanY, sumXX, sumYY, sumXY float64
	origin := w.origin
	for i := range w.ends {
		if p := w.run[len(w.run)-1-i]; isFinite(p.x) && isFinite(p.y) {
			if n == 0 {
				origin = p
			}
			inverse := w.inverse[n]
			n++
			x, y := p.x-origin.x, p.y-origin.y
			dx, dy := x-meanX, y-meanY
			meanX += dx * inverse
			meanY += dy * inverse
			ry := y - meanY
			sumXX += dx * (x - meanX)
			sumYY += dy * ry
			sumXY += dx * ry
		}
		w.ends[i] = moments{float64(n), meanX, meanY, sumXX, sumYY, sumXY}
	}
	w.origin, w.older = origin, len(w.ends)
	w.newer, w.counted, w.moments = 0, 0, moments{}
}

// Pearson is the correlation of the samples in the window.
func (w *Window) Pearson() Result {
	w.countNewer()
	m := w.moments
	if w.older > 0 {
		m = merged(&w.ends[w.older-1], &m)
	}
	return m.result(w.older + w.newer)
}
