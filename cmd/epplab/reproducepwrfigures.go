package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/lab/reproduction"
	"github.com/epplan/epplan/planner/policy"
)

// The groups of policies that the paper speaks of.
var (
	paperMixes  = []string{"pwr+fgd:0.05", "pwr+fgd:0.1", "pwr+fgd:0.2"}
	paperRivals = []string{"bestfit", "dotprod", "gpupacking", "gpuclustering", "random"}
	paperLast   = []string{"dotprod", "gpupacking", "gpuclustering"} // behind BestFit, but for random
)

// savingClaim is a statement of the paper's text on savings: the least, or the
// greatest, of some policies over a range of loads, per cent.
type savingClaim struct {
	family, whose string
	policies      []string
	from, to      float64
	greatest      bool
	paper         float64
}

// The curves begin to be flat at this load.
const settledLoad = 0.15

var savingClaims = []savingClaim{
	{"default", "the mixes", paperMixes, settledLoad, 0.8, false, 13},
	{"default", "the mixes", paperMixes, 0.8, 0.9, false, 5},
	{"default", "rivals", paperRivals, 0, 0.9, true, 5},
	{"gpushare100", "the mixes", paperMixes, settledLoad, 0.7, false, 13},
	{"gpushare100", "the mixes", paperMixes, 0.7, 0.8, false, 5},
	{"gpushare100", "bestfit", []string{"bestfit"}, 0, 0.8, true, 5},
	{"multigpu20", "α 0.1 and 0.2", paperMixes[1:], settledLoad, 0.82, false, 12},
	{"multigpu20", "α 0.05", paperMixes[:1], settledLoad, 0.82, false, 7},
	{"multigpu50", "α 0.2", paperMixes[2:], settledLoad, 0.9, false, 7},
	{"multigpu50", "α 0.05 and 0.1", paperMixes[:2], settledLoad, 0.9, false, 4},
	{"gpuspec10", "the mixes", paperMixes, settledLoad, 0.9, false, 10},
}

// ratioClaim is a statement on the allocation ratio at load 1: by how much one
// group is behind another.
type ratioClaim struct {
	family, ahead, behind string
	first, second         []string
	paper                 float64
}

var (
	onlyFGD     = []string{"fgd"}
	onlyBestFit = []string{"bestfit"}
	mixesAndFit = []string{"bestfit", "pwr+fgd:0.05", "pwr+fgd:0.1", "pwr+fgd:0.2"}
)

var ratioClaims = []ratioClaim{
	{"default", "fgd", "mixes and bestfit", onlyFGD, mixesAndFit, 0.02},
	{"default", "mixes and bestfit", "other rivals", mixesAndFit, paperLast, 0.01},
	{"gpushare40", "fgd", "mixes and bestfit", onlyFGD, mixesAndFit, 0.02},
	{"gpushare40", "mixes and bestfit", "other rivals", mixesAndFit, paperLast, 0.02},
	{"gpushare100", "fgd", "bestfit", onlyFGD, onlyBestFit, 0.02},
	{"gpushare100", "bestfit", "the mixes", onlyBestFit, paperMixes, 0.01},
	{"multigpu20", "fgd", "the mixes", onlyFGD, paperMixes, 0.01},
	{"multigpu20", "the mixes", "bestfit", paperMixes, onlyBestFit, 0.01},
}

// leadClaim is a statement on FGD's greatest lead in the allocation ratio over
// a policy, within a range of loads.
type leadClaim struct {
	family, whose string
	policies      []string
	from, to      float64
	paper         float64
}

var leadClaims = []leadClaim{
	{"gpuspec10", "the mixes", paperMixes, 0.21, 0.73, 0.025},
	{"gpuspec33", "α 0.1", paperMixes[1:2], 0, 1, 0.05},
	{"gpuspec33", "α 0.2", paperMixes[2:], 0, 1, 0.08},
}

// paperFindings returns the figures of some sections on one family; what the paper
// states in words comes first, with its number.
func (in *inflation) paperFindings(runs [][]inflationRun, sections []string) []reproduction.Finding {
	f := &familyFigures{in: in, runs: runs, as: in.label}
	if in.label == "synthetic" {
		f.as = "default"
	}
	if slices.Contains(sections, "power") {
		f.power()
	}
	if slices.Contains(sections, "savings") {
		f.savings()
	}
	if slices.Contains(sections, "grar") {
		f.ratios()
	}
	return f.found
}

type familyFigures struct {
	in    *inflation
	runs  [][]inflationRun
	as    string // the family whose statements apply
	found []reproduction.Finding
}

func (f *familyFigures) add(section, unit string, ours, paper float64, format string, args ...any) {
	what := f.in.label + ", " + fmt.Sprintf(format, args...)
	f.found = append(f.found, reproduction.Finding{
		Section: section, What: what, Unit: unit, Ours: rounded(ours), Paper: paper,
	})
}

// rounded keeps as many digits as figures in a paper have.
func rounded(x float64) float64 { return math.Round(1e4*x) / 1e4 }

// power is figure 1.
func (f *familyFigures) power() {
	fgd := slices.IndexFunc(f.in.policies, f.in.named("fgd"))
	watts := func(_, row int) float64 {
		return f.mean(fgd, row, func(p int, s int) float64 {
			return float64(f.runs[p][s].Curve[row].Power())
		})
	}
	share := func(_, row int) float64 {
		return f.mean(fgd, row, func(p int, s int) float64 {
			return float64(f.runs[p][s].Curve[row].GPU / f.runs[p][s].Curve[row].Power())
		})
	}
	low, high := f.in.extremes(0, 1, onlyFGD, watts)
	least, most := f.in.extremes(0, 1, onlyFGD, share)
	stated := [4]float64{}
	if f.as == "default" {
		stated = [4]float64{200, 1400, 72, 76}
	}
	f.add("power", "kW", low/1000, stated[0], "fgd, least EOPC")
	f.add("power", "kW", high/1000, stated[1], "fgd, greatest EOPC up to load 1")
	f.add("power", "%", 100*least, stated[2], "fgd, least part of the GPUs")
	f.add("power", "%", 100*most, stated[3], "fgd, greatest part of the GPUs")
}

// savings are figures 2 to 6.
func (f *familyFigures) savings() {
	saving := func(p, row int) float64 {
		return f.mean(p, row, func(p, s int) float64 {
			return 100 * (1 - float64(f.runs[p][s].Curve[row].Power()/f.runs[f.in.base][s].Curve[row].Power()))
		})
	}
	for _, c := range savingClaims {
		if c.family != f.as {
			continue
		}
		low, high := f.in.extremes(c.from, c.to, c.policies, saving)
		if c.greatest {
			f.add("savings", "% saved", high, c.paper, "%s at most, load %s to %s", c.whose, loadText(c.from),
				loadText(c.to))
		} else {
			f.add("savings", "% saved", low, c.paper, "%s at least, load %s to %s", c.whose, loadText(c.from),
				loadText(c.to))
		}
	}
	for p, name := range f.in.policies {
		for _, load := range []float64{0.2, 0.4, 0.6, 0.8, 0.9, 1} {
			if p != f.in.base {
				f.add("savings", "% saved", 100*f.in.saving(f.runs, p, load).mean, 0,
					"%s, load %s", name.Name, loadText(load))
			}
		}
	}
}

// ratios are figures 2 and 7 to 10.
func (f *familyFigures) ratios() {
	ratio := func(p, row int) float64 {
		return f.mean(p, row, func(p, s int) float64 { return f.runs[p][s].Curve[row].Ratio })
	}
	for _, c := range ratioClaims {
		if c.family == f.as {
			f.add("grar", "GRAR", f.groupRatio(c.first)-f.groupRatio(c.second), c.paper,
				"%s behind %s, load 1.0", c.behind, c.ahead)
		}
	}
	for _, c := range leadClaims {
		if c.family == f.as {
			_, lead := f.in.extremes(c.from, c.to, c.policies, func(p, row int) float64 {
				return ratio(f.in.base, row) - ratio(p, row)
			})
			f.add("grar", "GRAR", lead, c.paper, "fgd ahead of %s at most, load %s to %s", c.whose,
				loadText(c.from), loadText(c.to))
		}
	}
	if f.as == "default" {
		f.add("grar", "load", f.perfectUntil(ratio), 0.88,
			"pwr and the mixes place nearly all (GRAR .999) up to")
	}
	for p, name := range f.in.policies {
		for _, load := range []float64{nearFullLoad, fullLoad} {
			f.add("grar", "GRAR", f.in.ratio(f.runs[p], load).mean, 0, "%s, load %s",
				name.Name, loadText(load))
		}
	}
}

func (f *familyFigures) groupRatio(policies []string) float64 {
	sum := 0.0
	for _, name := range policies {
		p := slices.IndexFunc(f.in.policies, f.in.named(name))
		sum += f.in.ratio(f.runs[p], fullLoad).mean
	}
	return sum / float64(len(policies))
}

// nearlyAllPlaced is the allocation ratio from which on a task or two are missing.
const nearlyAllPlaced = 0.999

// perfectUntil returns the load up to which PWR and its mixes place nearly all.
func (f *familyFigures) perfectUntil(ratio func(p, row int) float64) float64 {
	for row := range 131 {
		low, _ := f.in.extremes(float64(row)/100, float64(row)/100,
			append([]string{"pwr"}, paperMixes...), ratio)
		if low < nearlyAllPlaced {
			return float64(row-1) / 100
		}
	}
	return f.in.until
}

// mean is that of a quantity over the streams at a row; NaN past the end.
func (f *familyFigures) mean(p, row int, of func(p, s int) float64) float64 {
	for s := range f.runs[p] {
		if row >= len(f.runs[p][s].Curve) {
			return math.NaN()
		}
	}
	return meanSDOf(len(f.in.seeds), func(s int) float64 { return of(p, s) }).mean
}

func (*inflation) named(name string) func(*policy.Placement) bool {
	return func(p *policy.Placement) bool { return strings.EqualFold(p.Name, name) }
}
