package record

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// byteReader takes an encoding apart; after an error, which wraps its fault, it
// gives zeros.
type byteReader struct {
	rest    []byte
	wrapped error
	err     error
}

// boundedInt returns a number from 0 to most.
func (r *byteReader) boundedInt(most int64) int64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(most) { //nolint:gosec // most is positive
		r.err = fmt.Errorf("%w: a number is cut off or too large", r.wrapped)
		return 0
	}
	r.rest = r.rest[n:]
	return int64(v) //nolint:gosec // it was compared
}

// readBase64 decodes what a JSON string holds in base64, or null, into a value.
func readBase64[T any](into *T, text []byte, decode func([]byte) (T, error), fault error) error {
	var blob []byte
	if err := json.Unmarshal(text, &blob); err != nil {
		return fmt.Errorf("%w: %w", fault, err)
	}
	read, err := decode(blob)
	if err != nil {
		return err
	}
	*into = read
	return nil
}
