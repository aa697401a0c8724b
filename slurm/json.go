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

// number reads any form in which Slurm wrote a number: 4, null, "4",
// {"set":true,"infinite":false,"number":4} (from 23.02). Other kinds are unset.
type number struct {
	value    int64
	set      bool
	infinite bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	*n = number{}
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

func (n *number) fromText(text string) {
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

// or gives the value, or other when there is none.
func (n number) or(other int64) int64 {
	if !n.set || n.infinite || n.value == NoVal || n.value < 0 && other >= 0 {
		return other
	}
	return n.value
}

// bounded gives the value within an int's safe range, or other.
func (n number) bounded(other int64) int {
	v := n.or(other)
	if v > math.MaxInt32 || v < math.MinInt32 {
		v = other
	}
	return int(v)
}

func (n number) uint32() uint32 {
	if v := n.or(0); v >= 0 && v <= math.MaxUint32 {
		return uint32(v)
	}
	return 0
}

func (n number) jobID() JobID {
	if v := n.or(0); v > 0 && v <= maxJobID {
		return JobID(v)
	}
	return 0
}

// text reads a string; null and other kinds are empty.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	if b[0] != '"' {
		return nil
	}
	s, err := unquote(b)
	if err != nil {
		return err
	}
	*t = text(s)
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

// known gives the text, or nothing for Slurm's words for nothing.
func (t text) known() string {
	if unset(string(t)) {
		return ""
	}
	return string(t)
}

// words reads a string or a list of strings (job_state from 23.11).
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(b []byte) error {
	*w = nil
	switch b[0] {
	case '"':
		s, err := unquote(b)
		if err != nil {
			return err
		}
		*w = words{s}
	case '[':
		if len(bytes.TrimSpace(b[1:len(b)-1])) == 0 {
			return nil
		}
		var list []text
		if err := json.Unmarshal(b, &list); err != nil {
			return fmt.Errorf("read list: %w", err)
		}
		for _, s := range list {
			*w = append(*w, string(s))
		}
	}
	return nil
}

// flag reads true, false, and the number forms of both.
type flag bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *flag) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case 't':
		*f = true
	case 'f', 'n':
		*f = false
	default:
		var n number
		if err := n.UnmarshalJSON(b); err != nil {
			return err
		}
		*f = n.or(0) != 0
	}
	return nil
}

func metaVersion(raw json.RawMessage) Version {
	var meta struct {
		Slurm struct { // matches "slurm" (23.11) and "Slurm" alike
			Version struct{ Major, Minor, Micro number }
		}
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return Version{}
	}
	v := meta.Slurm.Version
	return Version{Major: v.Major.bounded(0), Minor: v.Minor.bounded(0), Micro: v.Micro.bounded(0)}
}

func answerErrors(raw json.RawMessage) []string {
	var list []struct {
		Error, Description text
		Number             number `json:"error_number"`
		Errno              number `json:"error_code"`
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
		if n := e.Number.or(e.Errno.or(0)); msg == "" {
			msg = "error " + strconv.FormatInt(n, 10)
		}
		out = append(out, Printable(msg, 200))
	}
	return out
}
