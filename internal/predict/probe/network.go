package probe

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// The network and how it is trained; what isn't the paper's (PREDICT, appendix A.2)
// is the rate, which is higher because there are fewer jobs and no warm GPU.
const (
	hiddenUnits    = 30
	batchSize      = 8
	maxEpochs      = 400
	learningRate   = 2e-3
	weightDecay    = 1e-3 // of weights, AdamW
	l1Penalty      = 1e-5 // L1
	patienceEpochs = 30   // epochs
	minImprovement = 1e-3 // of the loss, that counts
	statsMomentum  = 0.1  // of running statistics
	epsilon        = 1e-5
	folds          = 20

	// What coordinates are divided by where it is known which are words and which are
	// numbers: a word that one job has must not weigh as much as the epochs of all.
	styleScale  = 10
	numberScale = 1.5
)

// network is an embedding's coordinates, 30 units with batch normalisation and ReLU,
// and one output.
type network struct {
	active              []int     // coordinates that vary
	mean, scale         []float64 // of active coordinates
	w1, b1              param     // hidden × active, hidden
	gain, shift         param     // hidden
	w2, b2              param     // hidden, 1
	runMean, runVar     []float64
	offset, spread      float64 // of the logarithms
	margin              float64
	doubt               *uncertainty
	reach               outputBounds
	preact, norm, slope [][]float64 // by row of a batch
	steps               int
}

// param are weights with AdamW's two moments.
type param struct{ v, g, m, s []float64 }

func newParam(n int) param {
	return param{v: make([]float64, n), g: make([]float64, n), m: make([]float64, n), s: make([]float64, n)}
}

// fitNetwork trains a network on all jobs, and others on parts of them for its interval.
func fitNetwork(ctx context.Context, s *Set) (*network, error) {
	d := newDual(s)
	found, err := d.best()
	if err != nil {
		return nil, err
	}
	logs := s.logs()
	errs, err := networkErrors(ctx, s, logs)
	if err != nil {
		return nil, err
	}
	net, err := train(ctx, s.Embeddings, logs, s.Style)
	if err != nil {
		return nil, err
	}
	net.margin, net.doubt, net.reach = margin(errs, found.doubts), d.uncertaintyOf(found), s.bounds()
	return net, nil
}

// networkErrors returns the errors of networks on jobs that weren't learnt from, in
// logarithms. Which jobs are left out together is drawn at random: tables may have their
// own order, such as every fifth job of a kind, and a part of one kind only would say
// what a job of a new kind is off by.
func networkErrors(ctx context.Context, s *Set, logs []float64) ([]float64, error) {
	n, r := len(logs), s.bounds()
	errs := make([]float64, n)
	order := rand.New(rand.NewPCG(3, 4)).Perm(n)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for fold := range min(folds, n) {
		work.Go(func() error {
			var x [][]float64
			var y []float64
			for at, i := range order {
				if at%folds != fold {
					x, y = append(x, s.Embeddings[i]), append(y, logs[i])
				}
			}
			net, err := train(ctx, x, y, s.Style)
			if err != nil {
				return err
			}
			for at := fold; at < n; at += folds {
				i := order[at]
				errs[i] = logs[i] - r.clamp(net.value(s.Embeddings[i]))
			}
			return nil
		})
	}
	return errs, work.Wait()
}

// Estimate returns the network's answer.
func (n *network) Estimate(e []float64) Estimate {
	return n.reach.estimate(n.value(e), n.margin*n.doubt.ofJob(e))
}

// value returns the logarithm that it expects.
func (n *network) value(e []float64) float64 {
	x := n.standardised(e)
	out := n.b2.v[0]
	for h := range hiddenUnits {
		z := n.b1.v[h] + dot(n.w1.v[h*len(x):(h+1)*len(x)], x)
		z = (z-n.runMean[h])/math.Sqrt(n.runVar[h]+epsilon)*n.gain.v[h] + n.shift.v[h]
		out += n.w2.v[h] * max(0, z)
	}
	return n.offset + n.spread*out
}

// standardised returns an embedding's active coordinates, each with mean 0 and deviation 1
// over the jobs that were learnt from.
func (n *network) standardised(e []float64) []float64 {
	x := make([]float64, len(n.active))
	for i, k := range n.active {
		x[i] = (e[k] - n.mean[i]) / n.scale[i]
	}
	return x
}

// moments returns the mean and the standard deviation of numbers.
func moments(count int, at func(i int) float64) (mean, deviation float64) {
	for i := range count {
		mean += at(i) / float64(count)
	}
	for i := range count {
		deviation += (at(i) - mean) * (at(i) - mean) / float64(count)
	}
	return mean, math.Sqrt(deviation)
}

func newNetwork(x [][]float64, y []float64, style int, random *rand.Rand) *network {
	n := &network{runMean: make([]float64, hiddenUnits), runVar: make([]float64, hiddenUnits)}
	for k := range x[0] {
		if mean, deviation := moments(len(x), func(i int) float64 { return x[i][k] }); deviation > epsilon {
			switch {
			case style > 0 && k < style:
				deviation = styleScale
			case style > 0:
				deviation = numberScale
			}
			n.active, n.mean, n.scale = append(n.active, k), append(n.mean, mean), append(n.scale, deviation)
		}
	}
	n.offset, n.spread = moments(len(y), func(i int) float64 { return y[i] })
	n.spread = max(n.spread, epsilon)
	n.w1, n.b1 = newParam(hiddenUnits*len(n.active)), newParam(hiddenUnits)
	n.gain, n.shift, n.w2, n.b2 = newParam(hiddenUnits), newParam(hiddenUnits),
		newParam(hiddenUnits), newParam(1)
	size := math.Sqrt(2 / math.Max(1, float64(len(n.active))))
	for i := range n.w1.v {
		n.w1.v[i] = size * random.NormFloat64()
	}
	for h := range hiddenUnits {
		n.gain.v[h], n.runVar[h] = 1, 1
		n.w2.v[h] = math.Sqrt(1.0/hiddenUnits) * random.NormFloat64()
	}
	for range batchSize {
		n.preact = append(n.preact, make([]float64, hiddenUnits))
		n.norm = append(n.norm, make([]float64, hiddenUnits))
		n.slope = append(n.slope, make([]float64, hiddenUnits))
	}
	return n
}

// train trains until the loss stops getting smaller.
func train(ctx context.Context, x [][]float64, y []float64, style int) (*network, error) {
	random := rand.New(rand.NewPCG(1, 2))
	n := newNetwork(x, y, style, random)
	rows, targets := make([][]float64, len(x)), make([]float64, len(y))
	for i := range x {
		rows[i], targets[i] = n.standardised(x[i]), (y[i]-n.offset)/n.spread
	}
	best, waited := math.Inf(1), 0
	for range maxEpochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		loss, order := 0.0, random.Perm(len(rows))
		for from := 0; from+1 < len(order); from += batchSize { // a batch of one has no deviation
			to := min(from+batchSize, len(order))
			loss += n.step(rows, targets, order[from:to]) / float64(len(order))
		}
		if waited++; loss < best-minImprovement {
			best, waited = loss, 0
		}
		if waited >= patienceEpochs {
			break
		}
	}
	return n, nil
}

// step learns from a batch and tells the sum of its squared errors.
func (n *network) step(rows [][]float64, targets []float64, of []int) float64 {
	width := len(n.active)
	for b, i := range of {
		for h := range hiddenUnits {
			n.preact[b][h] = n.b1.v[h] + dot(n.w1.v[h*width:(h+1)*width], rows[i])
		}
	}
	deviation := n.normalise(len(of))
	loss := 0.0
	for b, i := range of {
		out := n.b2.v[0]
		for h := range hiddenUnits {
			out += n.w2.v[h] * max(0, n.norm[b][h]*n.gain.v[h]+n.shift.v[h])
		}
		err := out - targets[i]
		loss += err * err
		n.backOutput(b, 2*err/float64(len(of)))
	}
	n.backHidden(rows, of, deviation)
	n.update()
	return loss
}

// normalise is batch normalisation of a batch's first rows.
func (n *network) normalise(rows int) []float64 {
	deviations := make([]float64, hiddenUnits)
	for h := range hiddenUnits {
		mean, deviation := moments(rows, func(b int) float64 { return n.preact[b][h] })
		deviations[h] = math.Sqrt(deviation*deviation + epsilon)
		for b := range rows {
			n.norm[b][h] = (n.preact[b][h] - mean) / deviations[h]
		}
		n.runMean[h] += statsMomentum * (mean - n.runMean[h])
		unbiased := deviation * deviation * float64(rows) / float64(max(1, rows-1))
		n.runVar[h] += statsMomentum * (unbiased - n.runVar[h])
	}
	return deviations
}

// backOutput carries a row's error back through output and ReLU.
func (n *network) backOutput(b int, err float64) {
	n.b2.g[0] += err
	for h := range hiddenUnits {
		n.slope[b][h] = 0
		if z := n.norm[b][h]*n.gain.v[h] + n.shift.v[h]; z > 0 {
			n.w2.g[h] += err * z
			n.slope[b][h] = err * n.w2.v[h]
			n.gain.g[h] += n.slope[b][h] * n.norm[b][h]
			n.shift.g[h] += n.slope[b][h]
		}
	}
}

// backHidden carries errors back through batch normalisation and the first layer.
func (n *network) backHidden(rows [][]float64, of []int, deviation []float64) {
	width, count := len(n.active), float64(len(of))
	for h := range hiddenUnits {
		sum, along := 0.0, 0.0
		for b := range of {
			d := n.slope[b][h] * n.gain.v[h]
			sum += d
			along += d * n.norm[b][h]
		}
		g := n.w1.g[h*width : (h+1)*width]
		for b, i := range of {
			d := (n.slope[b][h]*n.gain.v[h] - sum/count - n.norm[b][h]*along/count) / deviation[h]
			n.b1.g[h] += d
			for k, v := range rows[i] {
				g[k] += d * v
			}
		}
	}
}

// update is a step of AdamW, weights with L1.
func (n *network) update() {
	n.steps++
	for _, p := range []*param{&n.w1, &n.w2} {
		for i, v := range p.v {
			p.g[i] += l1Penalty * float64(sign(v))
		}
		p.update(n.steps, weightDecay)
	}
	for _, p := range []*param{&n.b1, &n.gain, &n.shift, &n.b2} {
		p.update(n.steps, 0)
	}
}

func sign(v float64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func (p *param) update(step int, decay float64) {
	const first, second, least = 0.9, 0.999, 1e-8
	root := math.Sqrt(1 - math.Pow(second, float64(step)))
	size := learningRate * root / (1 - math.Pow(first, float64(step)))
	for i, g := range p.g {
		p.m[i] += (1 - first) * (g - p.m[i])
		p.s[i] += (1 - second) * (g*g - p.s[i])
		p.v[i] -= size*p.m[i]/(math.Sqrt(p.s[i])+least*root) + learningRate*decay*p.v[i]
		p.g[i] = 0
	}
}
