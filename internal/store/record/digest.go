package record

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrInvalid tells that a record can't be kept as it is; it is wrapped with
// what is wrong with it. Trying again doesn't help.
var ErrInvalid = errors.New("invalid record")

// MaxText is how many bytes a text field of a record may have.
const MaxText = 64 << 10

// Canonical is the outcome as it is kept: times in microseconds, texts in
// UTF-8, empty lists absent. What can't be kept is [ErrInvalid].
func (o *Outcome) Canonical() (Outcome, error) {
	c := *o
	if c.Cluster == "" || c.RunID == "" {
		return c, fmt.Errorf("%w: an outcome needs a cluster and a run id", ErrInvalid)
	}
	if Text(c.Cluster) != c.Cluster || Text(c.RunID) != c.RunID {
		return c, fmt.Errorf("%w: cluster %q or run id %q isn't text", ErrInvalid, c.Cluster, c.RunID)
	}
	for _, text := range []*string{
		&c.Node, &c.Workload, &c.GPUModel, &c.ExitState,
		(*string)(&c.Arm), (*string)(&c.GPUSource), (*string)(&c.NodeSource),
	} {
		*text = Text(*text)
	}
	if c.Arm == "" {
		c.Arm = Excluded
	}
	c.Submitted, c.Started, c.Ended = Micro(c.Submitted), Micro(c.Started), Micro(c.Ended)
	if len(c.GPUs) == 0 {
		c.GPUs = nil
	}
	if len(c.Clocks) == 0 {
		c.Clocks = nil
	}
	if len(c.ThrottledS) == 0 {
		c.ThrottledS = nil
	}
	if len(c.Stays) == 0 {
		c.Stays = nil
	}
	if len(c.Stays) > MaxStays {
		return c, fmt.Errorf("%w: run %s: at %d clocks, at most %d are allowed", ErrInvalid, c.RunID, len(c.Stays), MaxStays)
	}
	for i := range c.Stays {
		if err := c.Stays[i].Validate(); err != nil {
			return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
		}
	}
	for reason, seconds := range c.ThrottledS {
		if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
			return c, fmt.Errorf("%w: run %s: throttled for %g s because of %q", ErrInvalid, c.RunID, seconds, reason)
		}
	}
	if _, err := DecodeProfile(c.Profile.Encode()); err != nil {
		return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
	}
	if _, err := DecodeReadings(c.Readings.Encode()); err != nil {
		return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
	}
	return c, nil
}

// Digest tells what nodes measured apart: it is of a canonical outcome without
// what the controller adds to it (the decision, how the job ended), without a node
// energy that was computed from the settings in force, and without readings and
// stays. These may differ when the same outcome is delivered again: Slurm has
// forgotten the job by then, or a controller that knew nothing of readings or stays
// acknowledged it first.
func (o *Outcome) Digest() ([sha256.Size]byte, error) {
	measured := *o
	if o.Restarted.Seen() { // the controller says so
		measured.TimeS, measured.GPUEnergyJ, measured.NodeEnergyJ = o.Restarted.TimeS, o.Restarted.GPUEnergyJ, o.Restarted.NodeEnergyJ
	}
	measured.DecisionID, measured.Workload, measured.GPUModel, measured.Arm = 0, "", "", ""
	measured.Submitted, measured.Restart, measured.ExitState, measured.Slowdown = time.Time{}, 0, "", Number{}
	measured.Readings, measured.Stays, measured.Restarted = Readings{}, nil, Restarted{}
	if o.NodeSource == Modelled {
		measured.NodeEnergyJ, measured.NodeSource = Number{}, Unmeasured
	}
	text, err := json.Marshal(&measured)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("%w: run %s: %w", ErrInvalid, o.RunID, err)
	}
	return sha256.Sum256(text), nil
}

// Text is a text as records keep it: invalid UTF-8 and NUL replaced, cut to
// [MaxText] bytes.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && len(s) <= MaxText {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= MaxText {
		return s
	}
	cut := MaxText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}
