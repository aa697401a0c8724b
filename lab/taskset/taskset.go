// Package taskset generates, with a seed, the EDL paper's random task sets
// (§5.1.3), and clusters with tasks like those of the openb trace.
package taskset

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

// The constants of the paper's generator.
const (
	// ReferencePairs is the number of CPU-GPU pairs that a utilisation of 1
	// keeps busy.
	ReferencePairs = 1024
	// SlotsPerDay is the number of slots over which online tasks arrive.
	SlotsPerDay = 1440

	repeatsMin, repeatsMax = 10, 50
	utilisationMin         = 0.001
)

//go:embed library.csv
var libraryText string

// App is one application of the paper's library: its model for one repetition.
type App struct {
	Name  string
	Model dvfsmodel.Params
}

// Library returns the 20 applications with which the paper's published parameter
// ranges were rebuilt.
func Library() ([]App, error) {
	rows, err := csv.NewReader(strings.NewReader(libraryText)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("application library: %w", err)
	}
	apps := make([]App, 0, len(rows)-1)
	for _, row := range rows[1:] {
		app := App{Name: row[0]}
		for i, p := range dvfsmodel.ParamList() {
			at := slices.Index(rows[0], p.Symbol)
			if at < 0 {
				continue // 0
			}
			if *app.Model.Value(i), err = strconv.ParseFloat(row[at], 64); err != nil {
				return nil, fmt.Errorf("application library: %w", err)
			}
		}
		apps = append(apps, app)
	}
	return apps, nil
}

// Spec says which task set to generate.
type Spec struct {
	Offline float64 // utilisation of the tasks that are there at slot 0
	Online  float64 // utilisation of the tasks that arrive over the day
	Slots   int     // length of the day; 0 means SlotsPerDay
	Pairs   int     // pairs that a utilisation of 1 keeps busy; 0 means ReferencePairs
}

// Generate draws a task set. Each task repeats a random application 10 to 50
// times; its utilisation u is uniform, and its deadline t*/u after its arrival.
// The last task of each part is trimmed so that the utilisations add up
// exactly. Arrivals over the day are independent and uniform: Poisson counts,
// given their sum.
func Generate(spec Spec, rng *rand.Rand) (*queue.Batch, error) {
	apps, err := Library()
	if err != nil {
		return nil, err
	}
	if spec.Slots == 0 {
		spec.Slots = SlotsPerDay
	}
	if spec.Pairs == 0 {
		spec.Pairs = ReferencePairs
	}
	if !(spec.Offline >= 0) || !(spec.Online >= 0) ||
		!(spec.Offline+spec.Online > 0 && spec.Offline+spec.Online <= 1e6) || spec.Slots < 1 ||
		spec.Pairs < 1 {
		return nil, errors.New("utilisations must be 0 or more and not both 0, slots and pairs 1 or more")
	}
	g := generator{apps: apps, rng: rng, batch: &queue.Batch{Name: "generated"}}
	g.addTasks(spec.Offline*float64(spec.Pairs), func() float64 { return 0 })
	first := len(g.batch.Jobs)
	g.addTasks(spec.Online*float64(spec.Pairs), func() float64 { return float64(1 + rng.IntN(spec.Slots)) })
	g.sortByArrival(first)
	return g.batch, nil
}

type generator struct {
	apps  []App
	rng   *rand.Rand
	batch *queue.Batch
}

// addTasks adds tasks until their utilisations add up to total.
func (g *generator) addTasks(total float64, arrival func() float64) {
	for rest := total; rest > 0; {
		u := utilisationMin + (1-utilisationMin)*g.rng.Float64()
		if u > rest {
			u = rest
		}
		rest -= u
		if rest < utilisationMin/2 { // what is left is rounding, or too little for a task
			u, rest = u+rest, 0
		}
		g.add(min(u, 1), arrival())
	}
}

func (g *generator) add(u, arrival float64) {
	app := g.apps[g.rng.IntN(len(g.apps))]
	m := app.Model.Scale(float64(repeatsMin + g.rng.IntN(repeatsMax-repeatsMin+1)))
	job := queue.NewJob("")
	job.Name, job.Model, job.Arrival = app.Name, &m, arrival
	job.Deadline = arrival + m.DefaultTime()/u
	g.batch.Jobs = append(g.batch.Jobs, job)
}

// sortByArrival puts the online part in order and numbers all jobs.
func (g *generator) sortByArrival(first int) {
	slices.SortStableFunc(g.batch.Jobs[first:], func(a, b queue.Job) int {
		switch {
		case a.Arrival < b.Arrival:
			return -1
		case a.Arrival > b.Arrival:
			return 1
		}
		return 0
	})
	for i := range g.batch.Jobs {
		g.batch.Jobs[i].ID = strconv.Itoa(i)
	}
}
