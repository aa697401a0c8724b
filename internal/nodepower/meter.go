package nodepower

import (
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// maxDomainPower is more than any package or its memory draws. By it a counter that
// was reset is told from one that wrapped around, and a time that is too long
// from one in which a counter wrapped around once at most.
const maxDomainPower dvfsmodel.Watt = 1000

// counterLag is by how much counters may be behind the clock.
const counterLag = 100 * time.Millisecond

// EnergyStep is what a node's CPUs and memory used between two readings.
type EnergyStep struct {
	Energy dvfsmodel.Joule
	Time   time.Duration
	Known  bool // the counters tell; Energy is 0 otherwise
}

// Meter reads a node's counters again and again. It may be used by several
// goroutines.
type Meter struct {
	files   fs.FS
	domains []powerDomain

	mu   sync.Mutex
	last []uint64 // microjoules by domain; nil before the first step
	at   time.Time
}

// Open finds the counters below a folder such as /sys/class/powercap, and reads
// them once. The error is [ErrAbsent] where there are none, and wraps
// [fs.ErrPermission] where they are root's alone, as they are from Linux 5.10 on.
func Open(powercap fs.FS) (*Meter, error) {
	domains, err := findDomains(powercap)
	if err != nil {
		return nil, err
	}
	m := &Meter{files: powercap, domains: domains}
	if _, err := m.read(); err != nil {
		return nil, err
	}
	return m, nil
}

// Domains names the counters that are summed, such as "package-0" and "dram".
func (m *Meter) Domains() []string {
	names := make([]string, len(m.domains))
	for i := range m.domains {
		names[i] = m.domains[i].name
	}
	return names
}

// Next returns the step from the last call to this one; the first call's is empty.
// After an error the next step begins where this one would have.
func (m *Meter) Next(now time.Time) (EnergyStep, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	values, err := m.read()
	if err != nil {
		return EnergyStep{}, err
	}
	first := m.last == nil
	step := EnergyStep{Time: now.Sub(m.at), Known: true}
	if !first && step.Time <= 0 {
		return EnergyStep{}, nil
	}
	for i := range m.domains {
		if first {
			break
		}
		used, known := m.domains[i].energyBetween(m.last[i], values[i], step.Time)
		step.Energy, step.Known = step.Energy+used, step.Known && known
	}
	m.last, m.at = values, now
	switch {
	case first:
		return EnergyStep{}, nil
	case !step.Known:
		step.Energy = 0
	}
	return step, nil
}

// read reads all counters.
func (m *Meter) read() ([]uint64, error) {
	values := make([]uint64, len(m.domains))
	for i := range m.domains {
		var err error
		if values[i], err = readNumber(m.files, m.domains[i].folder+"/energy_uj"); err != nil {
			return nil, fmt.Errorf("energy of %s: %w", m.domains[i].name, err)
		}
	}
	return values, nil
}
