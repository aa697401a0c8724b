package record

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/epplan/epplan/live"
)

// Limits of [Readings].
const (
	MaxReadingPoints = 64

	readingsVersion = 1
	maxReading      = 1 << 20 // of a watt or a MHz that is kept
	maxReadingGPUs  = 1 << 10
	// maxReadingBytes is more than any readings take.
	maxReadingBytes = 32 + 2*3*4*MaxReadingPoints
)

// ErrReadings tells that bytes aren't readings; it is wrapped with what is wrong.
var ErrReadings = errors.New("not readings of a run")

// Readings are power and core clock of a run's GPUs over its time, in bounded
// size: at most [MaxReadingPoints] points since its start, in whole watts and
// MHz. A [ReadingsSampler] makes them. The zero value is none.
type Readings struct {
	GPUs     int           // that they are of
	Interval time.Duration // of a point
	Power    []ValueRange  // W, of one GPU
	Core     []ValueRange  // MHz, as many points as Power
}

// ValueRange is a quantity in one interval: its mean over the GPUs and the time, and
// the least and the most that was read of any of them.
type ValueRange struct {
	Mean, Low, High float64
	Known           bool // something was read
}

// Columns are points as lists of one length: means, the least and the most.
func Columns(points []ValueRange) (mean, low, high []live.Number) {
	mean, low, high = make([]live.Number, len(points)), make([]live.Number, len(points)),
		make([]live.Number, len(points))
	for i, p := range points {
		if p.Known {
			mean[i], low[i], high[i] = live.Known(p.Mean), live.Known(p.Low), live.Known(p.High)
		}
	}
	return mean, low, high
}

// IsZero tells that there are no readings.
func (r *Readings) IsZero() bool { return len(r.Power) == 0 }

// Encode returns the readings as bytes, at most some 1.5 KB and mostly less than 400
// bytes; nil without any. A point that isn't known is a 0; else it is 1 and the
// mean's step from the last one, and how far the least and the most are from it.
func (r *Readings) Encode() []byte {
	if r.IsZero() {
		return nil
	}
	points := min(len(r.Power), len(r.Core), MaxReadingPoints)
	blob := []byte{readingsVersion}
	for _, n := range []int64{int64(r.GPUs), int64(r.Interval / time.Millisecond), int64(points)} {
		blob = binary.AppendUvarint(blob, uint64(max(n, 0)))
	}
	for _, series := range [][]ValueRange{r.Power, r.Core} {
		last := int64(0)
		for _, p := range series[:points] {
			if !p.Known {
				blob = append(blob, 0)
				continue
			}
			mean := quantised(p.Mean)
			step := mean - last
			last = mean
			blob = binary.AppendUvarint(blob, 1+uint64(step<<1^step>>63)) //nolint:gosec // zigzag
			blob = binary.AppendUvarint(blob, uint64(max(0, mean-quantised(p.Low))))
			blob = binary.AppendUvarint(blob, uint64(max(0, quantised(p.High)-mean)))
		}
	}
	return blob
}

// quantised returns a quantity as it is kept.
func quantised(v float64) int64 { return int64(math.Round(min(max(v, 0), maxReading))) }

// DecodeReadings reads what [Readings.Encode] wrote; other bytes, and more than
// there may be, are [ErrReadings].
func DecodeReadings(blob []byte) (Readings, error) {
	var r Readings
	switch {
	case len(blob) == 0:
		return r, nil
	case len(blob) > maxReadingBytes:
		return r, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrReadings, len(blob), maxReadingBytes)
	case blob[0] != readingsVersion:
		return r, fmt.Errorf("%w: version %d, not %d", ErrReadings, blob[0], readingsVersion)
	}
	in := readingsReader{byteReader{rest: blob[1:], wrapped: ErrReadings}}
	r.GPUs = int(in.boundedInt(maxReadingGPUs))
	r.Interval = time.Duration(in.boundedInt(maxInterval)) * time.Millisecond
	points := int(in.boundedInt(MaxReadingPoints))
	if in.err == nil && (points == 0 || r.Interval == 0) {
		in.err = fmt.Errorf("%w: %d points of %s", ErrReadings, points, r.Interval)
	}
	r.Power = in.valueRanges(points)
	r.Core = in.valueRanges(points)
	if in.err == nil && len(in.rest) > 0 {
		in.err = fmt.Errorf("%w: %d bytes more", ErrReadings, len(in.rest))
	}
	if in.err != nil {
		return Readings{}, in.err
	}
	return r, nil
}

// readingsReader takes the bytes apart.
type readingsReader struct{ byteReader }

func (in *readingsReader) valueRanges(points int) []ValueRange {
	all := make([]ValueRange, points)
	last := int64(0)
	for i := range all {
		code := in.boundedInt(4 * maxReading)
		if code == 0 {
			continue
		}
		code--
		last += code>>1 ^ -(code & 1)
		below, above := in.boundedInt(maxReading), in.boundedInt(maxReading)
		if in.err == nil && (last < below || last+above > maxReading) {
			in.err = fmt.Errorf("%w: point %d is out of bounds", ErrReadings, i)
		}
		if in.err != nil {
			return nil
		}
		all[i] = ValueRange{float64(last), float64(last - below), float64(last + above), true}
	}
	return all
}

// MarshalJSON writes the encoded readings in base64.
func (r Readings) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.StdEncoding.EncodeToString(r.Encode()))
}

// UnmarshalJSON reads what MarshalJSON wrote, or null.
func (r *Readings) UnmarshalJSON(text []byte) error {
	return readBase64(r, text, DecodeReadings, ErrReadings)
}

// ReadingsSampler makes [Readings] of samples of several GPUs, in bounded memory:
// when a run outgrows its points, neighbours are joined and the interval doubles.
type ReadingsSampler struct {
	gpus     int
	interval time.Duration
	points   []readingPoint
}

// readingPoint is the samples of one interval.
type readingPoint struct{ power, core rangeSums }

// rangeSums is what was read of a quantity in an interval.
type rangeSums struct {
	sum, seconds, low, high float64
}

func (s *rangeSums) add(value, seconds float64) {
	if s.seconds == 0 {
		s.low, s.high = value, value
	}
	s.low, s.high = min(s.low, value), max(s.high, value)
	s.sum += value * seconds
	s.seconds += seconds
}

func (s *rangeSums) join(o rangeSums) {
	switch {
	case o.seconds == 0:
	case s.seconds == 0:
		*s = o
	default:
		s.low, s.high = min(s.low, o.low), max(s.high, o.high)
		s.sum, s.seconds = s.sum+o.sum, s.seconds+o.seconds
	}
}

func (s *rangeSums) valueRange() ValueRange {
	if s.seconds == 0 {
		return ValueRange{}
	}
	mean := float64(quantised(s.sum / s.seconds))
	return ValueRange{mean, min(mean, float64(quantised(s.low))), max(mean, float64(quantised(s.high))), true}
}

// NewReadingsSampler makes a sampler of so many GPUs that begins with one point
// per interval, in whole milliseconds.
func NewReadingsSampler(gpus int, interval time.Duration) *ReadingsSampler {
	return &ReadingsSampler{
		gpus: min(gpus, maxReadingGPUs), interval: max(interval.Truncate(time.Millisecond), time.Millisecond),
	}
}

// Add takes power and core clock of one of the GPUs between two times since the
// run's start. What is negative or no number isn't known; what lies before the
// start is ignored.
func (s *ReadingsSampler) Add(from, to time.Duration, watts, coreMHz float64) {
	from = max(0, from)
	if from >= to {
		return
	}
	for (to-1)/s.interval >= MaxReadingPoints {
		s.halve()
	}
	if last := int((to - 1) / s.interval); last >= len(s.points) {
		s.points = append(s.points, make([]readingPoint, last+1-len(s.points))...)
	}
	for from < to {
		p := &s.points[from/s.interval]
		d := min(to-from, s.interval-from%s.interval)
		if watts >= 0 && !math.IsInf(watts, 0) {
			p.power.add(watts, d.Seconds())
		}
		if coreMHz >= 0 && !math.IsInf(coreMHz, 0) {
			p.core.add(coreMHz, d.Seconds())
		}
		from += d
	}
}

// halve joins neighbours and doubles the interval.
func (s *ReadingsSampler) halve() {
	half := make([]readingPoint, (len(s.points)+1)/2, MaxReadingPoints)
	for i, p := range s.points {
		half[i/2].power.join(p.power)
		half[i/2].core.join(p.core)
	}
	s.points, s.interval = half, 2*s.interval
}

// Readings returns what was sampled so far.
func (s *ReadingsSampler) Readings() Readings {
	if len(s.points) == 0 {
		return Readings{}
	}
	r := Readings{
		GPUs: s.gpus, Interval: s.interval, Power: make([]ValueRange, len(s.points)),
		Core: make([]ValueRange, len(s.points)),
	}
	for i := range s.points {
		r.Power[i], r.Core[i] = s.points[i].power.valueRange(), s.points[i].core.valueRange()
	}
	return r
}
