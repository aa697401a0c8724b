package consolidate

import "math"

// Physics is how a GPU's power and a task's time respond to its frequency.
type Physics struct {
	BaseW     float64   // power of a GPU that is on, without the part by frequency, watts (P_gs)
	WPerMHz   float64   // power by frequency, watts by MHz (alpha, eq. 3)
	Beta      float64   // t(f) = t_min (f_max/f)^Beta (eq. 5)
	LevelsMHz []float64 // frequencies that can be set, ascending; the last one is f_max
	StepMHz   float64   // step of frequency adaptation (algorithm 4)
}

// MaxMHz is f_max, the highest frequency.
func (p *Physics) MaxMHz() float64 { return p.LevelsMHz[len(p.LevelsMHz)-1] }

// Power is what a GPU that is on draws at a frequency, watts (eq. 3).
func (p *Physics) Power(mhz float64) float64 { return p.BaseW + p.WPerMHz*mhz }

// Stretch is how much longer than at f_max anything takes at a frequency,
// (f_max/f)^Beta (eq. 5).
func (p *Physics) Stretch(mhz float64) float64 { return math.Pow(p.MaxMHz()/mhz, p.Beta) }

// Instance is a consolidation problem: all tasks run together over one window.
type Instance struct {
	Name    string
	Physics Physics
	SLA     float64 // how many times its time alone at f_max a task may take, where it doesn't say itself
	SlotS   float64 // length of a slot of the series, seconds
	Servers []Server
	Tasks   []Task // in the order of their arrival
	// Contention is what sharing a GPU was measured to cost in time; nil:
	// [Linear]. [OnlineSLA], [CATSSafe], [LowestKept], [Improve] and [Exact] keep
	// SLAs by it, and [Judge] counts it whoever placed.
	Contention *Curve
}

// contention is what it costs that so many tasks share a GPU of memGB, of which
// they leave freeGB.
func (in *Instance) contention(tasks int, memGB, freeGB float64) Contention {
	if in.Contention == nil {
		return Linear{}
	}
	return in.Contention.Among(tasks, min(1, max(0, (memGB-freeGB)/memGB)))
}

// Server is a machine with GPUs. GPUs are numbered over all servers, in order.
type Server struct {
	StaticW, OtherW float64   // drawn while the server is on, watts (eq. 4)
	GPUMemGB        []float64 // memory of each of its GPUs, GB
	ID              string    // what it is called, for people; may be empty
	GPUIDs          []string  // what each of its GPUs is called, for people; nil: they have no names
}

// HostW is what the server draws while it is on, beside its GPUs, watts.
func (s *Server) HostW() float64 { return s.StaticW + s.OtherW }

// Task is a job that runs over the whole window.
type Task struct {
	ID      string
	Arrival float64   // seconds
	MemGB   float64   // memory that it takes on each of its GPUs, GB
	GPUs    int       // number of distinct GPUs that it needs
	Kappa   float64   // how many times its time alone at f_max it may take
	UtilPct []float64 // utilisation of each of its GPUs by slot, percent
	On      []int     // GPUs that it runs on now; nil: none. Only [Rearrange] and [Moves] are for that
}

// GPU is one GPU of an instance.
type GPU struct {
	Server int
	MemGB  float64
}

// GPUs lists the instance's GPUs by number.
func (in *Instance) GPUs() []GPU {
	var all []GPU
	for server := range in.Servers {
		for _, mem := range in.Servers[server].GPUMemGB {
			all = append(all, GPU{Server: server, MemGB: mem})
		}
	}
	return all
}

// Slots is how many slots the window has.
func (in *Instance) Slots() int {
	if len(in.Tasks) == 0 {
		return 0
	}
	return len(in.Tasks[0].UtilPct)
}

// Problem says what counts as slowing a task down.
type Problem uint8

// AsPrinted is the paper's problem: frequency alone slows tasks down. Safe
// counts contention too.
const (
	Safe Problem = iota
	AsPrinted
)

// String is the problem's name on the command line.
func (p Problem) String() string {
	if p == AsPrinted {
		return "as-printed"
	}
	return "safe"
}
