package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Features say what a script, and the source code that it runs, look like: vectors,
// from which no text can be had again.
type Features struct {
	Cluster string    `json:"cluster"`
	Source  string    `json:"source"` // a job's ScriptHash
	Script  []float32 `json:"script"` // of the script alone
	Code    []float32 `json:"code"`   // of the script and the source code; nil: not known
	Digest  []byte    `json:"digest"` // hash of what was read
	Seen    time.Time `json:"seen"`
}

// MaxFeatures is how long a vector may be.
const MaxFeatures = 1 << 13

// PackVector returns a vector as bytes: its length, and what isn't 0. Most is.
func PackVector(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	out := binary.AppendUvarint(nil, uint64(len(v)))
	last := -1
	for i, x := range v {
		if x != 0 {
			out = binary.AppendUvarint(out, uint64(i-last)) //nolint:gosec // above 0
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
			last = i
		}
	}
	return out
}

// UnpackVector returns the reverse of [PackVector]; nil for no bytes.
func UnpackVector(packed []byte) ([]float32, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	n, used := binary.Uvarint(packed)
	if used <= 0 || n == 0 || n > MaxFeatures {
		return nil, fmt.Errorf("%w: a vector of %d coordinates", ErrInvalid, n)
	}
	v, at := make([]float32, n), -1
	const width = 4
	for packed = packed[used:]; len(packed) > 0; packed = packed[used+width:] {
		var step uint64
		step, used = binary.Uvarint(packed)
		if used <= 0 || len(packed) < used+width || step == 0 || step > n || at+int(step) >= len(v) { //nolint:gosec // at most MaxFeatures
			return nil, fmt.Errorf("%w: a vector that is cut off", ErrInvalid)
		}
		at += int(step) //nolint:gosec // as above
		v[at] = math.Float32frombits(binary.LittleEndian.Uint32(packed[used:]))
	}
	return v, nil
}
