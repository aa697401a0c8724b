package record

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/live"
)

// Limits and codes of a [Series].
const (
	// MaxPoints is how many points a series has at most.
	MaxPoints = 256

	seriesVersion = 1
	pointSteps    = 200     // a point is a whole number of half percents
	gapByte       = 255     // no sample fell into this point's time
	maxInterval   = 1 << 40 // milliseconds: 35 years
)

// ErrSeries tells that bytes aren't a series; it is wrapped with what is wrong.
var ErrSeries = errors.New("not a utilisation series")

// Series is utilisation over a run in at most [MaxPoints] points, each the mean
// over the interval, in half percents. A [Sampler] makes one. The zero value is
// an empty series.
type Series struct {
	interval time.Duration
	points   []byte
}

// Interval returns the time that one point stands for.
func (s *Series) Interval() time.Duration { return s.interval }

// Len returns the number of points.
func (s *Series) Len() int { return len(s.points) }

// At returns the utilisation of point i, from 0 to 1; it is unknown where nothing
// was sampled.
func (s *Series) At(i int) live.Number {
	if s.points[i] == gapByte {
		return live.Number{}
	}
	return live.Known(float64(s.points[i]) / pointSteps)
}

// Encode returns the series as bytes: a version, the interval in milliseconds as a
// varint, and one byte per point. An empty series without an interval is nil.
func (s *Series) Encode() []byte {
	if s.interval == 0 {
		return nil
	}
	blob := make([]byte, 0, 1+binary.MaxVarintLen64+len(s.points))
	blob = append(blob, seriesVersion)
	blob = binary.AppendUvarint(blob, uint64(s.interval/time.Millisecond)) //nolint:gosec // an interval is positive
	return append(blob, s.points...)
}

// DecodeSeries reads what [Series.Encode] wrote; other bytes are [ErrSeries].
func DecodeSeries(blob []byte) (Series, error) {
	if len(blob) == 0 {
		return Series{}, nil
	}
	if blob[0] != seriesVersion {
		return Series{}, fmt.Errorf("%w: version %d, not %d", ErrSeries, blob[0], seriesVersion)
	}
	ms, n := binary.Uvarint(blob[1:])
	if n <= 0 || ms == 0 || ms > maxInterval {
		return Series{}, fmt.Errorf("%w: no interval", ErrSeries)
	}
	points := blob[1+n:]
	if len(points) > MaxPoints {
		return Series{}, fmt.Errorf("%w: %d points, at most %d are allowed", ErrSeries,
			len(points), MaxPoints)
	}
	for i, p := range points {
		if p > pointSteps && p != gapByte {
			return Series{}, fmt.Errorf("%w: point %d is %d, above %d", ErrSeries, i, p, pointSteps)
		}
	}
	return Series{
		interval: time.Duration(ms) * time.Millisecond,
		points:   bytes.Clone(points),
	}, nil
}

// MarshalJSON writes the encoded series in base64.
func (s Series) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.StdEncoding.EncodeToString(s.Encode()))
}

// UnmarshalJSON reads what MarshalJSON wrote, or null.
func (s *Series) UnmarshalJSON(text []byte) error {
	var blob []byte // encoding/json reads base64 into bytes
	if err := json.Unmarshal(text, &blob); err != nil {
		return fmt.Errorf("%w: %w", ErrSeries, err)
	}
	series, err := DecodeSeries(blob)
	if err != nil {
		return err
	}
	*s = series
	return nil
}
