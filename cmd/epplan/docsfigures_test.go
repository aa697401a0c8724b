package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

// The pictures of docs/explanation/model.md are drawn from the model itself:
// a workload of the EDL paper's kind, half of whose time follows each clock.
var pictured = dvfsmodel.Params{P0: 100, Gamma: 50, C: 150, D: 25, Delta: 0.5, T0: 5}

const pictureFolder = "../../docs/explanation"

// overCore are points of the model over the core clock, at a memory clock.
func overCore(r dvfsmodel.Range, fm float64, y func(dvfsmodel.Point) float64) report.Series {
	const steps = 140
	s := report.Series{Name: fmt.Sprintf("memory clock %.2g", fm)}
	for i := range steps + 1 {
		fc := r.FcMin + (r.FcMax()-r.FcMin)*float64(i)/steps
		p := pictured.At(dvfsmodel.Scaling{V: r.Voltage(fc), Fc: fc, Fm: fm})
		s.X, s.Y = append(s.X, fc), append(s.Y, y(p))
	}
	return s
}

// spot returns one point of a picture.
func spot(name string, p dvfsmodel.Point, y func(dvfsmodel.Point) float64) report.Series {
	return report.Series{
		Name: name, X: []float64{p.Scaling.Fc}, Y: []float64{y(p)}, Mark: report.Dots,
		Notes: []string{fmt.Sprintf("%s: core %.3g, memory %.3g, %.3g s, %.3g W", name, p.Scaling.Fc,
			p.Scaling.Fm, p.Time, float64(p.Power))},
	}
}

// modelPictures are charts by the names of their files, with the pictures' titles.
func modelPictures() map[string]struct {
	title  string
	charts []report.Chart
} {
	wide := dvfsmodel.WideRange()
	const core = "core clock, 1 is the default"
	seconds := func(p dvfsmodel.Point) float64 { return p.Time }
	watts := func(p dvfsmodel.Point) float64 { return float64(p.Power) }
	joules := func(p dvfsmodel.Point) float64 { return float64(p.Energy) }
	free := wide.FreeOptimum(pictured)
	base := pictured.At(dvfsmodel.DefaultScaling())
	energy := report.Series{Name: "least energy in time"}
	for t := wide.MinTime(pictured); t <= free.Time*1.3; t += 0.1 {
		p, err := wide.Optimum(pictured, dvfsmodel.MinEnergy(), t)
		if err != nil {
			continue // below the shortest time by rounding
		}
		energy.X, energy.Y = append(energy.X, t), append(energy.Y, joules(p))
	}
	bound := []report.Series{
		energy,
		{Name: "default clocks", X: []float64{base.Time}, Y: []float64{joules(base)}, Mark: report.Dots},
		{Name: "least energy", X: []float64{free.Time}, Y: []float64{joules(free)}, Mark: report.Dots},
	}
	low, high := 0.7, wide.FmMax
	return map[string]struct {
		title  string
		charts []report.Chart
	}{
		"model-time-power.svg": {"Run time and power over the core clock", []report.Chart{
			{
				Title: "run time", X: core, Y: "s", Lines: []report.Series{
					overCore(wide, low, seconds), overCore(wide, high, seconds),
				},
			},
			{
				Title: "power", X: core, Y: "W", Lines: []report.Series{
					overCore(wide, low, watts), overCore(wide, high, watts),
				},
			},
		}},
		"model-energy.svg": {"Energy over the core clock, and its least", []report.Chart{
			{Title: "energy of the run", X: core, Y: "J", Lines: []report.Series{
				overCore(wide, low, joules), overCore(wide, free.Scaling.Fm, joules),
				spot("least energy", free, joules), spot("default clocks", base, joules),
			}},
		}},
		"model-deadline.svg": {"Least energy by the time there is", []report.Chart{
			{
				Title: "least energy of a run that must end in time", X: "time that there is, s", Y: "J",
				Lines: bound,
			},
		}},
	}
}

func TestPicturesOfTheModelAreDrawnFromIt(t *testing.T) {
	for name, p := range modelPictures() {
		var drawn bytes.Buffer
		if err := report.WriteCharts(&drawn, p.title, p.charts); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(pictureFolder, name)
		text, err := os.ReadFile(file)
		if err != nil && !*update {
			t.Fatal(err)
		}
		underTest().WantPage(t, file, string(text), drawn.String())
	}
}

// modelTable is the table of docs/explanation/model.md.
var modelTable = regexp.MustCompile(`(?s)(<!-- numbers of the model -->\n).*?(<!-- end of numbers -->)`)

func TestNumbersOfTheModelsPageFollowFromIt(t *testing.T) {
	wide := dvfsmodel.WideRange()
	base := pictured.At(dvfsmodel.DefaultScaling())
	asFast, err := wide.Optimum(pictured, dvfsmodel.MinEnergy(), base.Time)
	if err != nil {
		t.Fatal(err)
	}
	fastest := wide.AtLimit(pictured, wide.MinTime(pictured))
	var b strings.Builder
	b.WriteString("\n| | core | memory | time, s | power, W | energy, J | against default |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		p    dvfsmodel.Point
	}{
		{"default clocks", base},
		{"least energy", wide.FreeOptimum(pictured)},
		{"least energy in the default's time", asFast},
		{"fastest", fastest},
	} {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.1f | %.0f | %.0f | %+.1f %% |\n", row.name, row.p.Scaling.Fc,
			row.p.Scaling.Fm,
			row.p.Time, float64(row.p.Power), float64(row.p.Energy),
			100*(float64(row.p.Energy/base.Energy)-1))
	}
	b.WriteString("\n")
	name := filepath.Join(pictureFolder, "model.md")
	page := commandtest.ReadPage(t, name)
	if !modelTable.MatchString(page) {
		t.Fatalf("%s has no <!-- numbers of the model -->", name)
	}
	underTest().WantPage(t, name, page, modelTable.ReplaceAllString(page, "${1}"+b.String()+"${2}"))
}

// The picture of README.md is of the plan above it.
func TestThePictureOfTheReadmeIsOfItsPlan(t *testing.T) {
	demo := func(name string) string { return filepath.Join("../../testdata/demo", name) }
	file := filepath.Join(t.TempDir(), "plan.svg")
	code, _, stderr := inProcess(t, "plan", demo("batch.csv"), "--cluster", demo("cluster.toml"), "--models",
		demo("models.toml"),
		"--rows", "5", "--svg", file)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	const picture = "../../docs/plan.svg"
	underTest().WantPage(t, picture, commandtest.ReadPage(t, picture), commandtest.ReadPage(t, file))
}

// readmeSaving is the row of README.md's table of savings that is about its plan.
var readmeSaving = regexp.MustCompile(`(\n\| 40 jobs on a small mixed cluster, the plan above \| )[^|]*( \|)`)

// The savings of the table in README.md are those of the plan above it.
func TestTheSavingsOfTheReadmesPlanAreThoseOfItsTable(t *testing.T) {
	const name = "../../README.md"
	page := commandtest.ReadPage(t, name)
	head := regexp.MustCompile(
		`\nSaving +(\S+ %) of [^,]*, (\S+ %) against EASY, (\S+ %) against constant clocks\n`,
	).FindStringSubmatch(page)
	if head == nil || !readmeSaving.MatchString(page) {
		t.Fatal("README.md has no plan with its savings, or no row of it in the table")
	}
	row := fmt.Sprintf("%s of all energy, by models; %s against EASY, %s against constant clocks", head[1],
		head[2], head[3])
	underTest().WantPage(t, name, page, readmeSaving.ReplaceAllString(page, "${1}"+row+"${2}"))
}
