package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// MaxSims is how many simulated GPUs a machine has at most.
const MaxSims = 64

// simSpec is what a text such as "sim:4,model=V100" asks for.
type simSpec struct {
	count    int
	model    string
	lock     ControlSet // the clocks that can be locked; by the model when lockSet is false
	lockSet  bool
	profiles bool
	noEnergy bool
	minors   []int // by GPU
	sharing  Sharing
	speed    float64 // work takes so much less time than its model says
	busy     bool    // at work always
	load     simLoad
}

// parseSimSpec reads "sim", "sim:N" and options after commas:
//
//	model=NAME      a GPU model of the profiles (default V100)
//	lock=none|core|both|limit
//	profiles        the GPUs have workload power profiles, as Blackwell's
//	energy=off      no energy counter, as before Volta
//	minor=reverse   /dev/nvidia0 is the last GPU in the driver's order
//	minor=2/0/1     the GPUs in that order are /dev/nvidia2, /dev/nvidia0, /dev/nvidia1
//	mig, mps        the GPUs are shared so
//	speed=60        work takes a sixtieth of its model's time
//	busy            the GPUs draw what they do at work, whether there is any or not
//	bursty          the same, by turns with waiting for the host; bursty=10/0.5: 5 of 10 seconds at work
//	load=FILE       the same, by the phases of a file; it is read anew at each start
//	wait=0.1        what waiting draws above idle power: this part of what the core clock costs at work
func parseSimSpec(text string) (simSpec, error) {
	s := simSpec{count: 1, model: "V100", speed: 1, load: simLoad{wait: waitShare}}
	head, rest, more := strings.Cut(text, ",")
	name, count, counted := strings.Cut(head, ":")
	if name != "sim" {
		return s, fmt.Errorf("GPU %q, want sim, sim:N or sim:N,option,…", text)
	}
	if counted {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > MaxSims {
			return s, fmt.Errorf("%q simulated GPUs, want a number from 1 to %d", count, MaxSims)
		}
		s.count = n
	}
	s.minors = make([]int, s.count)
	for i := range s.minors {
		s.minors[i] = i
	}
	if !more {
		return s, nil
	}
	for option := range strings.SplitSeq(rest, ",") {
		if err := s.set(option); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *simSpec) set(option string) (err error) {
	switch key, value, _ := strings.Cut(option, "="); {
	case key == "model" && value != "":
		s.model = value
	case option == "lock=none", option == "lock=core", option == "lock=both", option == "lock=limit":
		s.lockSet = true
		s.lock = map[string]ControlSet{
			"core": ControlsOf(CoreClock), "both": ControlsOf(CoreClock, MemClock),
			"limit": ControlsOf(PowerLimit),
		}[value]
	case option == "profiles":
		s.profiles = true
	case option == "energy=off":
		s.noEnergy = true
	case option == "minor=reverse":
		slices.Reverse(s.minors)
	case key == "minor":
		s.minors, err = parseMinors(value, s.count)
	case option == "mig":
		s.sharing.MIG = true
	case option == "mps":
		s.sharing.MPS = true
	case option == "busy":
		s.busy = true
	case option == "bursty", key == "bursty" && value != "":
		s.busy = true
		s.load.phases, err = parseBursts(value)
	case key == "load" && value != "":
		s.busy = true
		s.load.phases, err = readLoad(value)
	case key == "wait":
		s.load.wait, err = strconv.ParseFloat(value, 64)
		if err != nil || !(s.load.wait >= 0 && s.load.wait <= 1) {
			return fmt.Errorf("simulator option %q, want a number from 0 to 1", option)
		}
	case key == "speed":
		speed, err := strconv.ParseFloat(value, 64)
		if err != nil || !(speed > 0 && speed <= maxSpeed) {
			return fmt.Errorf("simulator option %q, want a number above 0, at most %v", option,
				float64(maxSpeed))
		}
		s.speed = speed
	default:
		return fmt.Errorf("simulator option %q, want model=NAME, lock=none|core|both|limit, profiles, "+
			"energy=off, minor=reverse, minor=N/N/…, mig, mps, speed=N, busy, bursty=PERIOD/DUTY, "+
			"load=FILE or wait=SHARE", option)
	}
	return err
}

// parseMinors reads the minor numbers of so many GPUs, such as "2/0/1".
func parseMinors(text string, count int) ([]int, error) {
	var minors []int
	for part := range strings.SplitSeq(text, "/") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n >= 2*MaxSims || slices.Contains(minors, n) {
			return nil, fmt.Errorf("simulator option minor=%s, want different numbers below %d",
				text, 2*MaxSims)
		}
		minors = append(minors, n)
	}
	if len(minors) != count {
		return nil, fmt.Errorf("simulator option minor=%s has %d numbers, want one for each of %d GPUs", text,
			len(minors), count)
	}
	return minors, nil
}

// maxSpeed bounds how much faster than their models simulated GPUs are.
const maxSpeed = 1e6

// SimSpeed returns how much faster than its model the work of simulated GPUs is, by
// the text that asks for them: by it a minute of Slurm's limits is shorter.
func SimSpeed(spec string) (float64, error) {
	s, err := parseSimSpec(spec)
	return s.speed, err
}

// simModel is what all simulated GPUs of a machine have in common.
type simModel struct {
	name       string
	table      *dvfsmodel.Table
	clocks     Clocks
	def        dvfsmodel.Setting
	idle       milliwatt
	limit      dvfsmodel.Watt // as delivered
	capability Capability
	speed      float64
	baseLoad   dvfsmodel.Model // work that never ends; nil: none
	load       simLoad         // in which phases; none: without a pause
}

func newSimModel(s simSpec, boards Boards) (*simModel, error) {
	board, err := boards(s.model)
	if err != nil {
		return nil, fmt.Errorf("simulator: %w", err)
	}
	table, err := dvfsmodel.NewTable(board.Default, board.Planned, board.Voltage)
	if err != nil {
		return nil, fmt.Errorf("simulator: GPU model %s: %w", board.Name, err)
	}
	m := &simModel{
		name: board.Name, table: table, clocks: ClocksOf(board.Planned), def: board.Default,
		idle: inMilliwatt(board.IdleW), limit: board.BusyW, speed: s.speed, load: s.load,
	}
	if m.limit == 0 {
		m.limit = defaultLimit
	}
	if s.busy {
		m.baseLoad = workOf(m.limit)
	}
	m.capability = Capability{Controls: s.lock, Energy: !s.noEnergy, Limits: PowerRange{
		Min: cmp.Or(min(board.LimitMin, m.limit), leastLimit*m.limit), Max: max(board.LimitMax, m.limit),
	}}
	switch {
	case s.lockSet:
	case len(m.clocks.Mem) > 1:
		m.capability.Controls = ControlsOf(CoreClock, MemClock, PowerLimit)
	default:
		m.capability.Controls = ControlsOf(CoreClock, PowerLimit)
	}
	if s.profiles {
		m.capability.Controls |= ControlsOf(WorkloadProfile)
		m.capability.Profiles = simProfiles.all()
	}
	return m, nil
}

// workOf is work that draws so much at default clocks, half of it as the core
// clock and its voltage say.
func workOf(power dvfsmodel.Watt) dvfsmodel.Params {
	return dvfsmodel.Params{P0: 0.4 * power, Gamma: 0.1 * power, C: 0.5 * power, D: 1, Delta: 0.5}
}

// defaultLimit is the power limit of models of which none is known.
const defaultLimit dvfsmodel.Watt = 250

// leastLimit is the lowest power limit as a part of the one as delivered, of models of which none
// is known.
const leastLimit = 0.4
