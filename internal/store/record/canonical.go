package record

import (
	"cmp"
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
	maxNotes  = 32
	maxNote   = 1000 // bytes
	maxMHz    = 100_000
	maxFactor = 1e6  // of a slowdown
	maxSpent  = 1e12 // seconds of all GPUs in one state
)

// Canonical returns the outcome as it is kept: times in microseconds, texts in
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
	c.Submitted, c.Started, c.Ended = StoredTime(c.Submitted), StoredTime(c.Started), StoredTime(c.Ended)
	err := c.checkBounds()
	if err != nil {
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
	if c.Notes, err = canonicalNotes(c.Notes); err != nil {
		return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
	}
	c.NotLocked = c.NotLocked.Truncated(maxNote)
	c.NotLocked.Why = CleanText(c.NotLocked.Why)
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
	if err := c.Profile.validate(); err != nil {
		return c, fmt.Errorf("%w: run %s: %w", ErrInvalid, c.RunID, err)
	}
	c.DropImplausible(&Bounds{})
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
		return fmt.Errorf("clocks of %g and %g MHz and a power limit of %g W, want 0 to %d MHz and %g W",
			float64(o.Setting.Core), float64(o.Setting.Mem), float64(o.Setting.Cap), maxMHz, float64(MaxGPUPower))
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

// canonicalNotes returns an outcome's notes as they are kept.
func canonicalNotes(notes []string) ([]string, error) {
	if len(notes) > maxNotes {
		return nil, fmt.Errorf("%d notes, at most %d are allowed", len(notes), maxNotes)
	}
	var clean []string
	for _, note := range notes {
		if len(note) > maxNote {
			return nil, fmt.Errorf("a note of %d bytes, at most %d are allowed", len(note), maxNote)
		}
		clean = append(clean, CleanText(note))
	}
	return clean, nil
}

// isPossible reports whether there can be such clocks.
func isPossible(s dvfsmodel.Setting) bool {
	return s.Core >= 0 && s.Core <= maxMHz && s.Mem >= 0 && s.Mem <= maxMHz && s.Cap >= 0 &&
		s.Cap <= MaxGPUPower && s.Profile <= dvfsmodel.MaxPowerProfile
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

// CleanText returns a text as records keep it: invalid UTF-8 and NUL replaced, cut to
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

// StoredTime returns a time as records keep it: UTC, whole microseconds. The zero time,
// which stands for unknown, stays zero.
func StoredTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// What one run on one node can come to at most. What is beyond was misread, or made up.
const (
	// MaxGPUPower is more than any GPU draws: 1,400 W is the most that boards are
	// sold with (NVIDIA GB300, AMD Instinct MI355X; data sheets of 2025).
	MaxGPUPower dvfsmodel.Watt = 3000
	// MaxHostPower is more than the rest of a node draws: an NVIDIA DGX B200 takes
	// 14.3 kW with its eight GPUs of 1 kW each (data sheet of 2024).
	MaxHostPower dvfsmodel.Watt = 15_000
	// MaxRunTime is 31 years, in seconds.
	MaxRunTime = 1e9

	maxMemory = 1e15 // bytes, of all GPUs of a node
	// spanSlack is how much longer a run may have taken than the time between its
	// start and its end says, whose clock may have been set meanwhile, in seconds.
	spanSlack = 60.0
	// energySlack is the time before and after a run whose energy may count with it:
	// counters and sensors lag, in seconds.
	energySlack = 10.0
	// rounding is how much a part may exceed the whole.
	rounding = 1e-6
)

// Times that a run can have.
var (
	earliestRun = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latestRun   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Implausible is what came with an outcome and can't be, as by a counter that
// jumped: it is kept for people to look at, and counts nowhere; where it was, the
// outcome knows nothing. It isn't part of what tells two deliveries apart.
type Implausible struct {
	Why             string                     `json:"why"` // what it is, and what there can be at most
	GPUs            []string                   `json:"gpus,omitempty"`
	Setting         dvfsmodel.Setting          `json:"setting,omitzero"` // which wasn't decided
	Submitted       time.Time                  `json:"submitted,omitzero"`
	Started         time.Time                  `json:"started,omitzero"`
	Ended           time.Time                  `json:"ended,omitzero"`
	TimeS           live.Number                `json:"time_s,omitzero"`
	GPUEnergyJ      live.Number                `json:"gpu_energy_j,omitzero"`
	GPUSource       Source                     `json:"gpu_energy_source,omitempty"`
	NodeEnergyJ     live.Number                `json:"node_energy_j,omitzero"`
	NodeSource      Source                     `json:"node_energy_source,omitempty"`
	MeanPowerW      live.Number                `json:"mean_power_w,omitzero"`
	PeakPowerW      live.Number                `json:"peak_power_w,omitzero"`
	Utilisation     live.Number                `json:"utilisation,omitzero"`
	PeakMemoryBytes live.Number                `json:"peak_memory_bytes,omitzero"`
	CapW            live.Number                `json:"cap_w,omitzero"`
	OtherCapsS      live.Number                `json:"other_caps_s,omitzero"`
	WorkClock       WorkClock                  `json:"work_clock,omitzero"`
	Restarted       Restarted                  `json:"restarted,omitzero"`
	Stays           []dvfsmodel.ClockResidency `json:"stays,omitempty"`
}

// IsZero tells that there was nothing of the kind.
func (p *Implausible) IsZero() bool { return p.Why == "" }

// Bounds are what a run can have come to at most, by what others than its sender know of it: by its
// decision, by Slurm, and by what its GPUs draw. A zero value bounds nothing.
type Bounds struct {
	GPUs         int            // that it had on its node
	GPUPower     dvfsmodel.Watt // of one of them
	Began, Ended time.Time      // between which it ran
	Lasted       float64        // seconds
}

// ClockSkew is how far apart the clocks of a node and of Slurm may be: munge refuses a credential that is
// older, or from further ahead, than 300 s (munged(8), --max-ttl and its default), and so Slurm such a node.
const ClockSkew = 300 * time.Second

// DropImplausible moves what can't be from the outcome to its Implausible: GPUs and times
// that aren't within the bounds, and what is more than a run of that time can have used on so many GPUs.
func (o *Outcome) DropImplausible(b *Bounds) {
	d := implausibleFilter{o: o, into: &o.Implausible, bounds: b}
	gpuPower := b.GPUPower
	if gpuPower <= 0 || gpuPower > MaxGPUPower {
		gpuPower = MaxGPUPower
	}
	if b.GPUs > 0 && len(o.GPUs) > b.GPUs {
		d.note("%d GPUs, it had %d", len(o.GPUs), b.GPUs)
		d.into.GPUs, o.GPUs = o.GPUs, slices.Clone(o.GPUs[:b.GPUs])
	}
	gpus := cmp.Or(len(o.GPUs), b.GPUs, MaxGPUs)
	power := float64(gpus) * float64(gpuPower)
	lasted := d.checkTimes()
	d.checkEnergies(lasted, power)
	d.checkNumber(&o.MeanPowerW, &d.into.MeanPowerW, "mean power", "W", power)
	d.checkNumber(&o.PeakPowerW, &d.into.PeakPowerW, "peak power", "W", power)
	d.checkNumber(&o.Utilisation, &d.into.Utilisation, "utilisation", "", 1+rounding)
	d.checkNumber(&o.PeakMemoryBytes, &d.into.PeakMemoryBytes, "peak memory", "bytes", maxMemory)
	d.checkNumber(&o.CapW, &d.into.CapW, "power limit", "W", float64(MaxGPUPower))
	d.checkNumber(&o.OtherCapsS, &d.into.OtherCapsS, "time at other power limits", "s", MaxRunTime)
	d.checkNumber(&o.WorkClock.CoreMHz, &d.into.WorkClock.CoreMHz, "clock at work", "MHz", maxMHz)
	d.checkNumber(&o.WorkClock.SpreadMHz, &d.into.WorkClock.SpreadMHz, "spread of the clock at work", "MHz",
		maxMHz)
	d.checkRestarted(power)
	d.checkStays(lasted, power)
	d.addReasons()
}

// DropSetting moves clocks at which the run can't have been locked, and why: it is of no workload then, as
// no model is to learn from it, and in no arm.
func (o *Outcome) DropSetting(why string) {
	d := implausibleFilter{o: o, into: &o.Implausible}
	d.note("locked at %s: %s", o.Setting.Words(), why)
	d.into.Setting, o.Setting = o.Setting, dvfsmodel.Setting{}
	o.Workload, o.Arm = "", live.ArmExcluded
	d.addReasons()
}

// implausibleFilter moves what can't be out of an outcome.
type implausibleFilter struct {
	o      *Outcome
	into   *Implausible
	bounds *Bounds
	why    []string
}

// addReasons adds the reasons to those that there are.
func (d *implausibleFilter) addReasons() {
	if len(d.why) == 0 {
		return
	}
	if d.into.Why != "" {
		d.why = append([]string{d.into.Why}, d.why...)
	}
	d.into.Why = strings.Join(d.why, "; ")
}

func (d *implausibleFilter) note(format string, args ...any) {
	d.why = append(d.why, fmt.Sprintf(format, args...))
}

// checkNumber moves a number that isn't from 0 to the most that it can be.
func (d *implausibleFilter) checkNumber(from, to *live.Number, what, unit string, most float64) {
	v, known := from.Get()
	if !known || v >= 0 && v <= most {
		return
	}
	*to, *from = *from, live.Number{}
	d.note("%s %.4g %s, want 0 to %.4g", what, v, unit, most)
}

// checkTimes moves times that can't be, and returns how long the run lasted at most.
func (d *implausibleFilter) checkTimes() (lasted float64) {
	o := d.o
	for _, t := range []struct {
		what     string
		from, to *time.Time
	}{
		{"submitted", &o.Submitted, &d.into.Submitted},
		{"started", &o.Started, &d.into.Started},
		{"ended", &o.Ended, &d.into.Ended},
	} {
		if !t.from.IsZero() && (t.from.Before(earliestRun) || !t.from.Before(latestRun)) {
			d.note("%s in %d", t.what, t.from.Year())
			*t.to, *t.from = *t.from, time.Time{}
		}
	}
	if !o.Started.IsZero() && !o.Ended.IsZero() && o.Ended.Before(o.Started) {
		d.note("started %s after it ended", o.Started.Sub(o.Ended).Round(time.Second))
		d.into.Started, o.Started = o.Started, time.Time{}
	}
	d.moveIntoBounds(&o.Started, &d.into.Started, "started", d.bounds.Began)
	d.moveIntoBounds(&o.Ended, &d.into.Ended, "ended", d.bounds.Ended)
	span := MaxRunTime
	if d.bounds.Lasted > 0 {
		span = min(span, d.bounds.Lasted)
	}
	if !o.Started.IsZero() && !o.Ended.IsZero() {
		span = min(span, o.Ended.Sub(o.Started).Seconds()+spanSlack)
	}
	d.checkNumber(&o.TimeS, &d.into.TimeS, "time", "s", span)
	return o.TimeS.Or(span)
}

// moveIntoBounds puts a time that can't be one of the run, as its node's clock is wrong, at that end of the
// run's time which it is of.
func (d *implausibleFilter) moveIntoBounds(from, to *time.Time, what string, end time.Time) {
	b := d.bounds
	if from.IsZero() || end.IsZero() || !from.Before(b.Began.Add(-ClockSkew)) &&
		(b.Ended.IsZero() || !from.After(b.Ended.Add(ClockSkew))) {
		return
	}
	d.note("%s %s, it ran from %s to %s", what, from.Format(time.RFC3339), b.Began.Format(time.RFC3339),
		b.Ended.Format(time.RFC3339))
	if to.IsZero() {
		*to = *from
	}
	*from = StoredTime(end)
}

// checkEnergies moves the energies of a run that lasted so long on GPUs that draw so much.
// They are judged by its time: without one that can be, they are moved, too.
func (d *implausibleFilter) checkEnergies(lasted, power float64) {
	o, had := d.o, *d.o
	most := power * (lasted + energySlack)
	d.checkNumber(&o.GPUEnergyJ, &d.into.GPUEnergyJ, "GPU energy", "J", most)
	d.checkNumber(&o.NodeEnergyJ, &d.into.NodeEnergyJ, "node energy", "J",
		most+float64(MaxHostPower)*(lasted+energySlack))
	if _, timeless := d.into.TimeS.Get(); timeless {
		d.into.GPUEnergyJ, o.GPUEnergyJ = d.into.GPUEnergyJ.Else(o.GPUEnergyJ), live.Number{}
	}
	if _, gone := d.into.GPUEnergyJ.Get(); gone { // it is a part of the node's
		d.into.NodeEnergyJ, o.NodeEnergyJ = d.into.NodeEnergyJ.Else(o.NodeEnergyJ), live.Number{}
	}
	if o.GPUEnergyJ != had.GPUEnergyJ {
		d.into.GPUSource, o.GPUSource = had.GPUSource, Unmeasured
	}
	if o.NodeEnergyJ != had.NodeEnergyJ {
		d.into.NodeSource, o.NodeSource = had.NodeSource, Unmeasured
	}
}

// checkRestarted moves what is known of a run over a restart and can't be.
func (d *implausibleFilter) checkRestarted(power float64) {
	r, to := &d.o.Restarted, &d.into.Restarted
	d.checkNumber(&r.TimeS, &to.TimeS, "time", "s", MaxRunTime)
	most := r.TimeS.Or(MaxRunTime) + energySlack
	d.checkNumber(&r.GPUEnergyJ, &to.GPUEnergyJ, "GPU energy", "J", power*most)
	d.checkNumber(&r.NodeEnergyJ, &to.NodeEnergyJ, "node energy", "J", (power+float64(MaxHostPower))*most)
}

// checkStays moves all stays where they can't be of a run that lasted so long.
func (d *implausibleFilter) checkStays(lasted, power float64) {
	var s dvfsmodel.ClockResidency
	for i := range d.o.Stays {
		one := &d.o.Stays[i]
		s.Seconds, s.Energy = s.Seconds+one.Seconds, s.Energy+one.Energy
		s.Work, s.Rest, s.RestEnergy = max(s.Work, one.Work), max(s.Rest, one.Rest),
			max(s.RestEnergy, one.RestEnergy)
	}
	seconds, energy := lasted+energySlack, power*(lasted+energySlack)
	if s.Seconds <= seconds && s.Work <= seconds && s.Rest <= seconds && float64(s.Energy) <= energy &&
		float64(s.RestEnergy) <= energy {
		return
	}
	d.note("stays of %.4g s and %.4g J, want at most %.4g and %.4g", s.Seconds, float64(s.Energy),
		seconds, energy)
	d.into.Stays, d.o.Stays = d.o.Stays, nil
}
