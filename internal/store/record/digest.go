package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// ErrInvalid tells that a record can't be kept as it is; it is wrapped with
// what is wrong with it. Trying again doesn't help.
var ErrInvalid = errors.New("invalid record")

// MaxText is how many bytes a text field of a record may have.
const MaxText = 64 << 10

// Bounds of an outcome's lists and names: no agent sends more. They keep a row of
// outcomes below 128 KiB.
const (
	MaxGPUs   = MaxProfileGPUs // of a node
	MaxRunID  = 200            // bytes, as the following ones
	MaxNode   = 255            // a name of DNS
	MaxUUID   = 96             // NVML_DEVICE_UUID_V2_BUFFER_SIZE
	maxName   = 200            // of a workload, a GPU model, a cluster
	maxWord   = 64             // exit states, sources, reasons for throttling
	maxClocks = 256            // pairs that are kept
	maxReason = 16             // for throttling
	maxMHz    = 100_000
	maxFactor = 1e6  // of a slowdown
	maxSpent  = 1e12 // seconds of all GPUs in one state
)

// Canonical is the outcome as it is kept: times in microseconds, texts in
// UTF-8, empty lists absent, what can't be in Implausible. What no agent sends is
// [ErrInvalid].
func (o *Outcome) Canonical() (Outcome, error) {
	c := *o
	if c.Cluster == "" || c.RunID == "" {
		return c, fmt.Errorf("%w: an outcome needs a cluster and a run id", ErrInvalid)
	}
	if CleanText(c.Cluster) != c.Cluster || CleanText(c.RunID) != c.RunID {
		return c, fmt.Errorf("%w: cluster %.40q or run id %.40q isn't text", ErrInvalid, c.Cluster, c.RunID)
	}
	for _, text := range []*string{
		&c.Node, &c.Workload, &c.GPUModel, &c.ExitState,
		(*string)(&c.Arm), (*string)(&c.GPUSource), (*string)(&c.NodeSource),
	} {
		*text = CleanText(*text)
	}
	if c.Arm == "" {
		c.Arm = live.ArmExcluded
	}
	c.Submitted, c.Started, c.Ended = Micro(c.Submitted), Micro(c.Started), Micro(c.Ended)
	if err := c.checkBounds(); err != nil {
		return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
	}
	if len(c.GPUs) == 0 {
		c.GPUs = nil
	}
	if c.Clocks = longestClocks(c.Clocks); len(c.Clocks) == 0 {
		c.Clocks = nil
	}
	if len(c.ThrottledS) == 0 {
		c.ThrottledS = nil
	}
	if len(c.Stays) == 0 {
		c.Stays = nil
	}
	if len(c.Stays) > MaxResidencies {
		return c, fmt.Errorf("%w: run %s: at %d clocks, at most %d are allowed", ErrInvalid, c.RunID,
			len(c.Stays), MaxResidencies)
	}
	for i := range c.Stays {
		if err := c.Stays[i].Validate(); err != nil {
			return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
		}
	}
	if _, err := DecodeProfile(c.Profile.Encode()); err != nil {
		return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
	}
	if _, err := DecodeReadings(c.Readings.Encode()); err != nil {
		return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
	}
	c.DropImplausible(0)
	return c, nil
}

// checkBounds says which of an outcome's lists, names and clocks is beyond what an agent
// sends.
func (o *Outcome) checkBounds() error {
	for _, text := range []struct {
		what, is string
		most     int
	}{
		{"cluster", o.Cluster, maxName},
		{"run id", o.RunID, MaxRunID},
		{"node", o.Node, MaxNode},
		{"workload", o.Workload, maxName},
		{"GPU model", o.GPUModel, maxName},
		{"exit state", o.ExitState, maxWord},
		{"source", string(o.GPUSource), maxWord},
		{"source", string(o.NodeSource), maxWord},
	} {
		if len(text.is) > text.most {
			return fmt.Errorf("a %s of %d bytes, at most %d are allowed", text.what, len(text.is), text.most)
		}
	}
	if len(o.GPUs) > MaxGPUs {
		return fmt.Errorf("%d GPUs, at most %d are allowed", len(o.GPUs), MaxGPUs)
	}
	for _, uuid := range o.GPUs {
		if len(uuid) > MaxUUID {
			return fmt.Errorf("a UUID of %d bytes, at most %d are allowed", len(uuid), MaxUUID)
		}
	}
	switch slowdown := o.Slowdown.Or(1); {
	case o.Arm != live.ArmTreated && o.Arm != live.ArmHeldOut && o.Arm != live.ArmConstant &&
		o.Arm != live.ArmExcluded:
		return fmt.Errorf("arm %.40q, want %s, %s, %s or %s", o.Arm, live.ArmTreated, live.ArmHeldOut,
			live.ArmConstant, live.ArmExcluded)
	case !isPossible(o.Setting):
		return fmt.Errorf("clocks of %g and %g MHz, want 0 to %d", float64(o.Setting.Core),
			float64(o.Setting.Mem), maxMHz)
	case !(slowdown >= 0 && slowdown <= maxFactor):
		return fmt.Errorf("%g times as long as at default clocks", slowdown)
	case len(o.ThrottledS) > maxReason:
		return fmt.Errorf("throttled for %d reasons, at most %d are allowed", len(o.ThrottledS), maxReason)
	}
	for i := range o.Clocks {
		if c := &o.Clocks[i]; !isPossible(c.Setting) || !(c.Seconds >= 0 && c.Seconds <= maxSpent) {
			return fmt.Errorf("%g s at %g and %g MHz", c.Seconds, float64(c.Core), float64(c.Mem))
		}
	}
	for reason, seconds := range o.ThrottledS {
		if len(reason) > maxWord || !(seconds >= 0 && seconds <= maxSpent) {
			return fmt.Errorf("throttled for %g s because of %.40q", seconds, reason)
		}
	}
	return nil
}

// isPossible reports whether there can be such clocks.
func isPossible(s dvfsmodel.Setting) bool {
	return s.Core >= 0 && s.Core <= maxMHz && s.Mem >= 0 && s.Mem <= maxMHz
}

// longestClocks are clocks as they are kept: of too many those that were seen longest,
// each pair once.
func longestClocks(clocks []live.Residency) []live.Residency {
	if len(clocks) <= maxClocks {
		return clocks
	}
	seconds := make(map[dvfsmodel.Setting]float64)
	for _, c := range clocks {
		seconds[c.Setting] += c.Seconds
	}
	joined := make([]live.Residency, 0, len(seconds))
	for setting, s := range seconds {
		joined = append(joined, live.Residency{Setting: setting, Seconds: s})
	}
	slices.SortFunc(joined, func(a, b live.Residency) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), a.Compare(b.Setting))
	})
	return joined[:min(len(joined), maxClocks)]
}

// Digest tells what nodes measured apart: it is of a canonical outcome without
// what the controller adds to it (the decision, how the job ended), without a node
// energy that was computed from the settings in force, and without readings and
// stays. These may differ when the same outcome is delivered again: Slurm has
// forgotten the job by then, or a controller that knew nothing of readings or stays
// acknowledged it first.
func (o *Outcome) Digest() ([sha256.Size]byte, error) {
	measured := *o
	if o.Restarted.IsComplete() { // the controller says so
		measured.TimeS, measured.GPUEnergyJ, measured.NodeEnergyJ = o.Restarted.TimeS, o.Restarted.GPUEnergyJ,
			o.Restarted.NodeEnergyJ
	}
	measured = measured.withImplausible()
	measured.DecisionID, measured.Workload, measured.GPUModel, measured.Arm = 0, "", "", ""
	measured.Submitted, measured.Restart, measured.ExitState, measured.Slowdown = time.Time{}, 0, "",
		live.Number{}
	measured.Readings, measured.Stays, measured.Restarted = Readings{}, nil, Restarted{}
	if measured.NodeSource == Modelled {
		measured.NodeEnergyJ, measured.NodeSource = live.Number{}, Unmeasured
	}
	text, err := json.Marshal(&measured)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("%w: run %s: %w", ErrInvalid, o.RunID, err)
	}
	return sha256.Sum256(text), nil
}

// CleanText is a text as records keep it: invalid UTF-8 and NUL replaced, cut to
// [MaxText] bytes.
func CleanText(s string) string {
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
