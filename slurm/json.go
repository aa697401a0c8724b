package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonNumber reads any form in which Slurm wrote a number: 4, null, "4",
// {"set":true,"infinite":false,"number":4} (from 23.02). Other kinds are unset.
type jsonNumber struct {
	value    int64
	set      bool
	infinite bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *jsonNumber) UnmarshalJSON(b []byte) error {
	*n = jsonNumber{}
	switch b[0] {
	case '{':
		var object struct {
			Set      *bool
			Infinite bool
			Number   json.RawMessage
		}
		if err := json.Unmarshal(b, &object); err != nil {
			return nil //nolint:nilerr // an object of another shape holds no number
		}
		if object.Set != nil && !*object.Set || len(object.Number) == 0 && !object.Infinite {
			n.infinite = object.Infinite
			n.set = object.Infinite
			return nil
		}
		if object.Infinite {
			n.set, n.infinite = true, true
			return nil
		}
		if object.Number[0] == '{' {
			return nil
		}
		return n.UnmarshalJSON(object.Number)
	case '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return fmt.Errorf("read text: %w", err)
		}
		n.fromText(text)
	case 'n', 't', 'f', '[':
	default:
		n.fromText(string(b))
	}
	return nil
}

func (n *jsonNumber) fromText(text string) {
	switch strings.ToUpper(text) {
	case "INFINITE", "UNLIMITED":
		n.set, n.infinite = true, true
		return
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		n.value, n.set = v, true
		return
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(f) < 1<<62 {
		n.value, n.set = int64(f), true
	}
}

// orElse gives the value, or other when there is none.
func (n jsonNumber) orElse(other int64) int64 {
	if !n.set || n.infinite || n.value == NoVal || n.value < 0 && other >= 0 {
		return other
	}
	return n.value
}

// boundedOr gives the value within an int's safe range, or other.
func (n jsonNumber) boundedOr(other int64) int {
	v := n.orElse(other)
	if v > math.MaxInt32 || v < math.MinInt32 {
		v = other
	}
	return int(v)
}

func (n jsonNumber) uint32() uint32 {
	if v := n.orElse(0); v >= 0 && v <= math.MaxUint32 {
		return uint32(v)
	}
	return 0
}

// jobID gives a record's own number, or 0 if it isn't one.
func (n jsonNumber) jobID() JobID {
	if n.set && !n.infinite && n.value > 0 && n.value <= MaxJobID {
		return JobID(n.value)
	}
	return 0
}

// otherJobID gives the number of an array or of a heterogeneous job, or 0 for none.
func (n jsonNumber) otherJobID() JobID {
	if id := n.jobID(); !id.isReserved() {
		return id
	}
	return 0
}

// jsonText reads a string; null and other kinds are empty.
type jsonText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *jsonText) UnmarshalJSON(b []byte) error {
	*t = ""
	if b[0] != '"' {
		return nil
	}
	s, err := unquote(b)
	if err != nil {
		return err
	}
	*t = jsonText(s)
	return nil
}

// unquote gives a string as JSON writes it.
func unquote(b []byte) (string, error) {
	if !bytes.ContainsRune(b, '\\') { // as nearly all
		return string(b[1 : len(b)-1]), nil
	}
	if out, err := jsontext.AppendUnquote(nil, b); err == nil {
		return string(out), nil
	}
	var s string // half a surrogate pair
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("read text: %w", err)
	}
	return s, nil
}

// orEmpty gives the text, or nothing for Slurm's words for nothing.
func (t jsonText) orEmpty() string {
	if isUnset(string(t)) {
		return ""
	}
	return string(t)
}

// jsonWords reads a string or a list of strings (job_state from 23.11).
type jsonWords []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *jsonWords) UnmarshalJSON(b []byte) error {
	*w = nil
	switch b[0] {
	case '"':
		s, err := unquote(b)
		if err != nil {
			return err
		}
		*w = jsonWords{s}
	case '[':
		if len(bytes.TrimSpace(b[1:len(b)-1])) == 0 {
			return nil
		}
		var list []jsonText
		if err := json.Unmarshal(b, &list); err != nil {
			return fmt.Errorf("read list: %w", err)
		}
		for _, s := range list {
			*w = append(*w, string(s))
		}
	}
	return nil
}

// jsonFlag reads true, false, and the number forms of both.
type jsonFlag bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *jsonFlag) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case 't':
		*f = true
	case 'f', 'n':
		*f = false
	default:
		var n jsonNumber
		if err := n.UnmarshalJSON(b); err != nil {
			return err
		}
		*f = n.orElse(0) != 0
	}
	return nil
}

func metaVersion(raw json.RawMessage) Version {
	var meta struct {
		Slurm struct { // matches "slurm" (23.11) and "Slurm" alike
			Version struct{ Major, Minor, Micro jsonNumber }
		}
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return Version{}
	}
	v := meta.Slurm.Version
	return Version{Major: v.Major.boundedOr(0), Minor: v.Minor.boundedOr(0), Micro: v.Micro.boundedOr(0)}
}

func answerErrors(raw json.RawMessage) []string {
	var list []struct {
		Error, Description jsonText
		Number             jsonNumber `json:"error_number"`
		Errno              jsonNumber `json:"error_code"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		msg := string(e.Error)
		if msg == "" {
			msg = string(e.Description)
		}
		if n := e.Number.orElse(e.Errno.orElse(0)); msg == "" {
			msg = "error " + strconv.FormatInt(n, 10)
		}
		out = append(out, Printable(msg, 200))
	}
	return out
}
