package gpucheck

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// Report is what a check found. Numbers that weren't measured are null in JSON.
type Report struct {
	Schema  int       `json:"schema"`
	Version string    `json:"version"` // of epd
	Driver  string    `json:"driver"`  // as --gpu has it
	At      time.Time `json:"at"`
	Wrote   bool      `json:"wrote"` // locks were tried
	GPUs    []GPU     `json:"gpus"`
	// Trouble is what is wrong with none of the GPUs: those that couldn't be opened, above all.
	Trouble []string `json:"trouble"`
}

// GPU is what was found of one of them.
type GPU struct {
	Index     int          `json:"index"` // in the driver's order
	Bus       string       `json:"bus"`
	Model     string       `json:"model"`
	Minor     int          `json:"minor"`
	InUse     string       `json:"in_use"` // why nothing was tried on it; empty: it wasn't in use
	Controls  []Control    `json:"controls"`
	Energy    bool         `json:"energy_counter"`
	Clocks    []ClockRow   `json:"clocks"`
	LimitW    live.Number  `json:"limit_w"`
	LimitWMin live.Number  `json:"limit_w_min"`
	LimitWMax live.Number  `json:"limit_w_max"`
	Profiles  []string     `json:"power_profiles,omitempty"` // workload power profiles that it has
	Calls     []Call       `json:"calls"`
	Idle      *Watched     `json:"idle"`
	Load      *Watched     `json:"load"` // null: none was run
	NoLoad    string       `json:"no_load,omitempty"`
	Catalogue string       `json:"catalogue"` // the model's name there; empty: it isn't known
	Differs   []Difference `json:"differs"`   // from the catalogue
	Lock      *Lock        `json:"lock"`      // null: none was tried
	// Faults are what must not be, Remarks what is worth knowing.
	Faults  []string `json:"faults"`
	Remarks []string `json:"remarks"`
}

// Control is something of a GPU that may be set.
type Control struct {
	Name string `json:"name"`
	Can  bool   `json:"can_be_set"`
}

// ClockRow is the core clocks that go with a memory clock.
type ClockRow struct {
	MemMHz dvfsmodel.MHz   `json:"mem_mhz"`
	Core   []dvfsmodel.MHz `json:"core_mhz"`
}

// Call is how long a call of the driver takes.
type Call struct {
	Name     string  `json:"call"`
	Count    int     `json:"count"`
	MedianMS float64 `json:"median_ms"`
	MaxMS    float64 `json:"max_ms"`
	Error    string  `json:"error,omitempty"`
}

// Watched is what a GPU did while it was left alone.
type Watched struct {
	Seconds     float64     `json:"seconds"`
	Readings    int         `json:"readings"`
	MeanW       live.Number `json:"mean_w"`
	MaxW        live.Number `json:"max_w"`
	CoreMHz     live.Number `json:"core_mhz"` // the highest that was read
	MemMHz      live.Number `json:"mem_mhz"`
	Utilisation live.Number `json:"utilisation"`
	CounterJ    live.Number `json:"counter_j"`    // energy by the counter
	IntegratedJ live.Number `json:"integrated_j"` // and by power over time
	Disagree    bool        `json:"disagree"`     // by more than sampling explains
}

// Difference is something that the catalogue says otherwise.
type Difference struct {
	Key       string `json:"key"` // as in a [[gpu]] table
	Here      string `json:"here"`
	Catalogue string `json:"catalogue"`
	Estimate  bool   `json:"estimate"` // nobody had measured it
}

// Lock is how a lock went that was set by a process which was then killed.
type Lock struct {
	Wanted    string      `json:"wanted"`
	TookMS    live.Number `json:"took_ms"` // from the journal to the look at the clocks
	Shown     string      `json:"shown"`   // what a reading showed then
	Held      bool        `json:"held"`    // after the process was killed, as far as readings show
	RestoreMS live.Number `json:"restore_ms"`
	// BackMS is how long after that the core clock was above the lock again; null: it wasn't above it before
	// either, as on an idle GPU.
	BackMS   live.Number `json:"back_ms"`
	Restored bool        `json:"restored"` // all is as before, as far as the driver tells
}

// OK reports whether nothing was found that must not be.
func (r *Report) OK() bool {
	for i := range r.GPUs {
		if len(r.GPUs[i].Faults) > 0 {
			return false
		}
	}
	return len(r.Trouble) == 0 && len(r.GPUs) > 0
}

// Write writes the report for people.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	tried := "only read"
	if r.Wrote {
		tried = "read, locked and given back"
	}
	fmt.Fprintf(&b, "epd %s, --gpu %s, %s: %d GPUs, %s\n", r.Version, r.Driver, r.At.UTC().Format(time.RFC3339),
		len(r.GPUs), tried)
	for i := range r.GPUs {
		r.GPUs[i].write(&b)
	}
	for _, t := range r.Trouble {
		fmt.Fprintf(&b, "FAULT     %s\n", t)
	}
	switch {
	case len(r.GPUs) == 0:
		b.WriteString("No GPU was found.\n")
	case r.OK():
		b.WriteString("No faults.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (g *GPU) write(b *strings.Builder) {
	fmt.Fprintf(b, "\nGPU %d     %s at %s, device file %d\n", g.Index, g.Model, g.Bus, g.Minor)
	var can, cant []string
	for _, c := range g.Controls {
		if c.Can {
			can = append(can, c.Name)
		} else {
			cant = append(cant, c.Name)
		}
	}
	counter := "no energy counter"
	if g.Energy {
		counter = "an energy counter"
	}
	fmt.Fprintf(b, "Can set   %s; not %s; %s\n", orNone(can), orNone(cant), counter)
	for _, row := range g.Clocks {
		fmt.Fprintf(b, "Clocks    memory %.0f MHz: core %.0f to %.0f MHz, %d of them\n", float64(row.MemMHz),
			float64(row.Core[len(row.Core)-1]), float64(row.Core[0]), len(row.Core))
	}
	fmt.Fprintf(b, "Limit     %s W, of %s to %s W\n", text(g.LimitW), text(g.LimitWMin), text(g.LimitWMax))
	if len(g.Profiles) > 0 {
		fmt.Fprintf(b, "Profiles  %s\n", strings.Join(g.Profiles, ", "))
	}
	for _, c := range g.Calls {
		fmt.Fprintf(b, "Call      %-10s %6.1f ms, at most %.1f of %d", c.Name, c.MedianMS, c.MaxMS, c.Count)
		if c.Error != "" {
			fmt.Fprintf(b, ": %s", c.Error)
		}
		b.WriteString("\n")
	}
	g.Idle.write(b, "Idle")
	if g.Load != nil {
		g.Load.write(b, "Load")
	} else {
		fmt.Fprintf(b, "Load      not measured: %s\n", g.NoLoad)
	}
	if g.Catalogue != "" {
		fmt.Fprintf(b, "Known as  %s\n", g.Catalogue)
	}
	for _, d := range g.Differs {
		estimate := ""
		if d.Estimate {
			estimate = ", an estimate"
		}
		fmt.Fprintf(b, "Differs   %s: %s here, %s in the catalogue%s\n", d.Key, d.Here, d.Catalogue, estimate)
	}
	g.Lock.write(b)
	if g.InUse != "" {
		fmt.Fprintf(b, "In use    %s\n", g.InUse)
	}
	for _, r := range g.Remarks {
		fmt.Fprintf(b, "Note      %s\n", r)
	}
	for _, f := range g.Faults {
		fmt.Fprintf(b, "FAULT     %s\n", f)
	}
}

func (w *Watched) write(b *strings.Builder, what string) {
	if w == nil {
		return
	}
	fmt.Fprintf(b, "%-9s %s W, at most %s, at %s/%s MHz, used %s, over %.0f s", what, text(w.MeanW),
		text(w.MaxW), text(w.CoreMHz), text(w.MemMHz), percent(w.Utilisation), w.Seconds)
	if _, counted := w.CounterJ.Get(); counted {
		fmt.Fprintf(b, "; counter %s J, by power %s J", text(w.CounterJ), text(w.IntegratedJ))
	}
	b.WriteString("\n")
}

func (l *Lock) write(b *strings.Builder) {
	if l == nil {
		return
	}
	held, restored := "gone after that", "NOT restored"
	if l.Held {
		held = "still there after that"
	}
	if l.Restored {
		restored = "given back in " + text(l.RestoreMS) + " ms"
	}
	fmt.Fprintf(b, "Lock      %s in %s ms; ran at %s; its process was killed; %s; %s", l.Wanted, text(l.TookMS),
		l.Shown, held, restored)
	if _, seen := l.BackMS.Get(); seen {
		fmt.Fprintf(b, "; above the lock again after %s ms", text(l.BackMS))
	}
	b.WriteString("\n")
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// text returns a number to a tenth; "?" where it isn't known.
func text(n live.Number) string {
	v, known := n.Get()
	if !known {
		return "?"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func percent(n live.Number) string {
	v, known := n.Get()
	if !known {
		return "?"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}
