package gpu

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Phase is a stretch of work and one of waiting after it, both in seconds at
// default clocks. Lower clocks make the work longer; the waiting is for the
// host, and lasts as long at any clocks.
type Phase struct{ Busy, Wait float64 }

// simLoad is how simulated GPUs are used that aren't at work all the time.
type simLoad struct {
	phases []Phase
	wait   float64 // part of the power of clocked work that waiting for the host draws
}

// What is assumed of a bursty load unless said otherwise. That a GPU draws a
// tenth of what its clocks cost at work while a program on it waits is a guess.
const (
	burstPeriod, burstDuty = 10, 0.5
	waitShare              = 0.1
	minPart                = 0.01 // seconds
	maxPhases              = 10_000
)

// samplePeriod is what the utilisation of a GPU with a bursty load is a mean
// over: that of the last such time that is over. Drivers take a sixth of a
// second to a second.
const samplePeriod = time.Second / 6

// parseBursts reads PERIOD/DUTY: seconds, and the part of them at work.
func parseBursts(text string) ([]Phase, error) {
	period, duty := float64(burstPeriod), burstDuty
	if text != "" {
		left, right, _ := strings.Cut(text, "/")
		var wrong [2]error
		period, wrong[0] = strconv.ParseFloat(left, 64)
		duty, wrong[1] = strconv.ParseFloat(right, 64)
		if err := errors.Join(wrong[:]...); err != nil {
			return nil, fmt.Errorf("bursts %q, want PERIOD/DUTY such as 10/0.5", text)
		}
	}
	p := Phase{Busy: period * duty, Wait: period * (1 - duty)}
	if err := p.validate(); err != nil {
		return nil, fmt.Errorf("bursts %q: %w", text, err)
	}
	return []Phase{p}, nil
}

func (p *Phase) validate() error {
	if !(p.Busy >= minPart && p.Wait >= minPart && p.Busy+p.Wait <= maxPhase) {
		return fmt.Errorf("%v s of work and %v s of waiting, want %v to %v s of each", p.Busy, p.Wait,
			minPart, float64(maxPhase))
	}
	return nil
}

// maxPhase bounds a phase, seconds.
const maxPhase = 1e6

// readLoad reads a file of phases: a line for each, the seconds of work and of
// waiting with a comma between. Lines that begin with # say nothing.
func readLoad(path string) ([]Phase, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load of simulated GPUs: %w", err)
	}
	defer func() { _ = file.Close() }()
	phases, err := parseLoad(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return phases, nil
}

func parseLoad(r io.Reader) ([]Phase, error) {
	var phases []Phase
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		left, right, _ := strings.Cut(text, ",")
		busy, notBusy := strconv.ParseFloat(strings.TrimSpace(left), 64)
		wait, notWait := strconv.ParseFloat(strings.TrimSpace(right), 64)
		p := Phase{Busy: busy, Wait: wait}
		if notBusy != nil || notWait != nil || p.validate() != nil {
			return nil, fmt.Errorf("line %d: %q, want seconds of work and of waiting, such as 3.5,2", n, text)
		}
		if phases = append(phases, p); len(phases) > maxPhases {
			return nil, fmt.Errorf("line %d: more than %d phases", n, maxPhases)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read phases: %w", err)
	}
	if len(phases) == 0 {
		return nil, errors.New("no phases")
	}
	return phases, nil
}

// FinishedWork is work that was done, by a simulator's own account.
type FinishedWork struct {
	PID   int
	Began time.Time
	Took  float64 // seconds
	// Default is how long it would have taken at default clocks and alone.
	Default float64
	Energy  dvfsmodel.Joule // of the GPU meanwhile
}

// maxFinished is how many pieces of work a GPU remembers that are done.
const maxFinished = 64

// finishWork notes that work is done.
func (s *simState) finishWork(m *simModel, w *Work) {
	s.Ended = append(s.Ended[max(0, len(s.Ended)-maxFinished+1):len(s.Ended):len(s.Ended)], FinishedWork{
		PID: w.PID, Began: w.Began, Took: s.Since.Sub(w.Began).Seconds(),
		Default: (w.Model.Time(1, 1) + w.Waited) / m.speed, Energy: dvfsmodel.Joule(w.Energy),
	})
}

// maxWrites is how many clock writes a GPU remembers.
const maxWrites = 256

// noteWrite notes that a clock was locked or given back.
func (s *simState) noteWrite() {
	s.Writes = append(s.Writes[max(0, len(s.Writes)-maxWrites+1):len(s.Writes):len(s.Writes)], s.Since)
}

// partTime returns how long the part of its phase lasts that a work has begun, in seconds
// at default clocks.
func (w *Work) partTime() float64 {
	p := w.Phases[w.Phase]
	if w.Waits {
		return p.Wait
	}
	return p.Busy
}

// beginNextPart has the next part of a work's phases begin.
func (w *Work) beginNextPart() {
	if w.Waits {
		w.Waited += w.partTime()
		w.Phase = (w.Phase + 1) % len(w.Phases)
	}
	w.Waits, w.Spent = !w.Waits, 0
}

// activeWork returns how many pieces of work want the GPU now.
func (s *simState) activeWork() int {
	n := 0
	for i := range s.Work {
		if !s.Work[i].Waits {
			n++
		}
	}
	return n
}

// waitPower returns what the GPU draws while all work on it waits.
func (s *simState) waitPower(m *simModel, at dvfsmodel.Scaling) milliwatt {
	of := workOf(m.limit)
	if len(s.Work) > 0 {
		of = s.Work[0].Model
	}
	clocked := of.C * dvfsmodel.Watt(at.V) * dvfsmodel.Watt(at.V) * dvfsmodel.Watt(at.Fc)
	return m.idle + inMilliwatt(clocked*dvfsmodel.Watt(m.load.wait))
}

// isAtWork is whether the load that never ends is at work at a time, and how long
// that stays so. It lasts as long at any clocks.
func (l *simLoad) isAtWork(at time.Time) (busy bool, next time.Duration) {
	left := time.Duration(at.UnixNano()) % l.cycleTime()
	for i := range l.phases {
		for _, part := range [...]float64{l.phases[i].Busy, l.phases[i].Wait} {
			busy = !busy
			d := nanos(part)
			if left < d {
				return busy, d - left
			}
			left -= d
		}
	}
	return false, 1 // not reached: the parts add up to the cycle
}

// cycleTime returns how long all phases last.
func (l *simLoad) cycleTime() time.Duration {
	var sum time.Duration
	for i := range l.phases {
		sum += nanos(l.phases[i].Busy) + nanos(l.phases[i].Wait)
	}
	return sum
}

func nanos(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// isIdleByLoad reports whether a load that never ends has the GPU wait now.
func (s *simState) isIdleByLoad(m *simModel) bool {
	if len(s.Work) > 0 || len(m.load.phases) == 0 {
		return false
	}
	busy, _ := m.load.isAtWork(s.Since)
	return !busy
}

// skipCycles brings a GPU without work forward through whole cycles of the load that
// never ends: energy is linear in time, so that this changes no sum.
func (s *simState) skipCycles(m *simModel, elapsed time.Duration) {
	if len(s.Work) > 0 || m.baseLoad == nil || len(m.load.phases) == 0 {
		return
	}
	cycle := m.load.cycleTime()
	times := int64(elapsed/cycle) - 1
	if times <= 0 {
		return
	}
	scaled := func(d time.Duration) time.Duration { return time.Duration(times * d.Nanoseconds()) }
	begin := s.Since
	for passed := time.Duration(0); passed < cycle; {
		s.Since = begin.Add(passed)
		_, next := m.load.isAtWork(s.Since)
		next = min(next, cycle-passed)
		s.bookEnergy(s.operation(m).power, scaled(next))
		passed += next
	}
	s.Since = begin.Add(scaled(cycle))
}

// bookUtilisation books time for the utilisation that the driver shows.
func (s *simState) bookUtilisation(d time.Duration, busy bool) {
	used := func(d time.Duration) time.Duration {
		if busy {
			return d
		}
		return 0
	}
	end := s.Since.Add(d)
	first, last := s.Since.Truncate(samplePeriod).Add(samplePeriod), end.Truncate(samplePeriod)
	if end.Before(first) {
		s.Used += used(d)
		return
	}
	s.Shown = float64(s.Used+used(first.Sub(s.Since))) / float64(samplePeriod)
	if last.After(first) {
		s.Shown = float64(used(samplePeriod)) / float64(samplePeriod)
	}
	s.Used = used(end.Sub(last))
}
