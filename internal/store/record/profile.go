package record

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Limits of a [Profile].
const (
	MaxProfilePoints = 64 // of each of its series
	MaxProfileGPUs   = 64

	profileVersion = 1
	aloneFlag      = 1
	// maxProfileBytes is more than any profile takes.
	maxProfileBytes = MaxProfileGPUs * (2*(MaxProfilePoints+32) + 32)
)

// ErrProfile tells that bytes aren't a profile; it is wrapped with what is wrong.
var ErrProfile = errors.New("not a profile of a run")

// Profile is how a run used its GPUs over time, in bounded size. The zero value
// is none.
type Profile struct {
	// Alone tells that nobody else was ever seen on its GPUs: only then it says
	// what the run does by itself.
	Alone bool
	GPUs  []GPUProfile // in the order of [Outcome.GPUs], at most [MaxProfileGPUs]
}

// GPUProfile is how a run used one GPU: at most [MaxProfilePoints] points since
// its start.
type GPUProfile struct {
	Utilisation Series
	Memory      Series // part of MemTotal in use; empty where that isn't known
	PeakMem     int64  // bytes; -1: not measured
	MemTotal    int64  // of the GPU, bytes; -1: not known
}

// IsZero tells that there is no profile.
func (p *Profile) IsZero() bool { return len(p.GPUs) == 0 }

// Encode returns the profile as bytes, at most some 14 KB; nil without one.
func (p *Profile) Encode() []byte {
	if p.IsZero() {
		return nil
	}
	blob := []byte{profileVersion, 0}
	if p.Alone {
		blob[1] = aloneFlag
	}
	gpus := p.GPUs[:min(len(p.GPUs), MaxProfileGPUs)]
	blob = binary.AppendUvarint(blob, uint64(len(gpus)))
	for i := range gpus {
		g := &gpus[i]
		for _, size := range []int64{g.PeakMem, g.MemTotal} {
			blob = binary.AppendUvarint(blob, uint64(max(size, -1)+1))
		}
		for _, s := range []*Series{&g.Utilisation, &g.Memory} {
			text := s.Encode()
			blob = binary.AppendUvarint(blob, uint64(len(text)))
			blob = append(blob, text...)
		}
	}
	return blob
}

// DecodeProfile reads what [Profile.Encode] wrote; other bytes, and more than
// there may be, are [ErrProfile].
func DecodeProfile(blob []byte) (Profile, error) {
	var p Profile
	if len(blob) == 0 {
		return p, nil
	}
	switch {
	case len(blob) > maxProfileBytes:
		return p, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrProfile, len(blob), maxProfileBytes)
	case blob[0] != profileVersion || len(blob) < 2:
		return p, fmt.Errorf("%w: version %d, not %d", ErrProfile, blob[0], profileVersion)
	case blob[1] > aloneFlag:
		return p, fmt.Errorf("%w: flags %d", ErrProfile, blob[1])
	}
	r := profileReader{byteReader{rest: blob[2:], wrapped: ErrProfile}}
	p.Alone = blob[1] == aloneFlag
	gpus := r.number()
	if r.err == nil && (gpus < 1 || gpus > MaxProfileGPUs) {
		r.err = fmt.Errorf("%w: %d GPUs, want 1 to %d", ErrProfile, gpus, MaxProfileGPUs)
	}
	for range gpus {
		if r.err != nil {
			return Profile{}, r.err
		}
		g := GPUProfile{PeakMem: r.number() - 1, MemTotal: r.number() - 1}
		g.Utilisation, g.Memory = r.series(), r.series()
		p.GPUs = append(p.GPUs, g)
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%w: %d bytes more", ErrProfile, len(r.rest))
	}
	if r.err == nil {
		r.err = p.validate()
	}
	if r.err != nil {
		return Profile{}, r.err
	}
	return p, nil
}

// validate says what a profile has that none may have; how long its series are is all
// that its encoding doesn't bound.
func (p *Profile) validate() error {
	for i := range p.GPUs {
		if n := max(p.GPUs[i].Utilisation.Len(), p.GPUs[i].Memory.Len()); n > MaxProfilePoints {
			return fmt.Errorf("%w: %d points, at most %d are allowed", ErrProfile, n, MaxProfilePoints)
		}
	}
	return nil
}

// profileReader takes a profile's bytes apart.
type profileReader struct{ byteReader }

func (r *profileReader) number() int64 { return r.boundedInt(math.MaxInt64) }

func (r *profileReader) series() Series {
	size := r.number()
	if r.err == nil && size > int64(len(r.rest)) {
		r.err = fmt.Errorf("%w: a series is cut off", ErrProfile)
	}
	if r.err != nil {
		return Series{}
	}
	s, err := DecodeSeries(r.rest[:size])
	if err != nil {
		r.err = fmt.Errorf("%w: %w", ErrProfile, err)
	}
	r.rest = r.rest[size:]
	return s
}

// MarshalJSON writes the encoded profile in base64.
func (p Profile) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.StdEncoding.EncodeToString(p.Encode()))
}

// UnmarshalJSON reads what MarshalJSON wrote, or null.
func (p *Profile) UnmarshalJSON(text []byte) error {
	return readBase64(p, text, DecodeProfile, ErrProfile)
}
