package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/replay"
)

// replayFiles are the files that a replay writes; empty names: none.
type replayFiles struct{ curve, decisions, svg string }

// newReplayFiles checks, before anything runs, where files go.
func newReplayFiles(c *cli.Context, in *inflation) (*replayFiles, error) {
	f := &replayFiles{c.String("curve"), c.String("decisions"), c.String("svg")}
	for _, out := range []struct{ flag, name string }{
		{"curve", f.curve},
		{"decisions", f.decisions},
		{"svg", f.svg},
	} {
		if out.name == "-" {
			return nil, terminal.Usagef("--%s is -, want a file: the table goes to standard output", out.flag)
		}
		if out.name != "" && in.runCount() > 1 && out.flag != "svg" && !terminal.IsDir(out.name) {
			return nil, terminal.Usagef("--%s %s with %d runs, want a folder that is there", out.flag,
				out.name, in.runCount())
		}
	}
	for _, pair := range [][2]string{{f.curve, f.decisions}, {f.curve, f.svg}, {f.decisions, f.svg}} {
		if terminal.IsSameTarget(pair[0], pair[1]) && (pair[1] != f.svg || !terminal.IsDir(f.svg)) {
			return nil, terminal.Usagef(
				"%s is to be written twice, want names of their own for curves, decisions "+
					"and pictures",
				pair[0],
			)
		}
	}
	return f, nil
}

func (f *replayFiles) write(
	ctx context.Context,
	t *terminal.Terminal,
	in *inflation,
	runs [][]inflationRun,
) error {
	for p := range runs {
		for s := range runs[p] {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f.writeRun(t, in, &runs[p][s], p, s); err != nil {
				return err
			}
		}
	}
	if f.svg == "" {
		return nil
	}
	return f.draw(t, in, runs)
}

func (f *replayFiles) writeRun(t *terminal.Terminal, in *inflation, run *inflationRun, p, s int) error {
	name := fmt.Sprintf("%s_%s_%d.csv", in.label, fileName(in.policies[p].Name), in.seeds[s])
	if f.curve != "" {
		err := writeCompressed(t, inFolder(f.curve, name), func(w io.Writer) error {
			return replay.WriteCurve(w, run.Curve)
		})
		if err != nil {
			return err
		}
	}
	if f.decisions == "" {
		return nil
	}
	d, err := in.draw(in.seeds[s])
	if err != nil {
		return err
	}
	node := func(i int) string {
		if d.order != nil {
			i = d.order[i]
		}
		return in.trace.rows[i].Name
	}
	task := func(i int) string { return in.trace.pods[d.rows[i]].Name }
	return writeCompressed(t, inFolder(f.decisions, name), func(w io.Writer) error {
		return replay.WriteDecisions(w, run.Log.Decisions, task, node)
	})
}

func fileName(policy string) string {
	return strings.NewReplacer(":", "-", "/", "-", "\\", "-", ",", "_").Replace(policy)
}

// inFolder returns a file in a folder, or the name itself if it isn't one.
func inFolder(name, file string) string {
	if terminal.IsDir(name) {
		return filepath.Join(name, file)
	}
	return name
}

// writeCompressed is write, compressed if the name says so.
func writeCompressed(t *terminal.Terminal, name string, f func(io.Writer) error) error {
	if !strings.HasSuffix(name, ".gz") {
		return t.Write(name, f)
	}
	return t.Write(name, func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(f(z), z.Close())
	})
}

// draw draws the charts into one picture, or a folder.
func (f *replayFiles) draw(t *terminal.Terminal, in *inflation, runs [][]inflationRun) error {
	charts := in.charts(runs)
	title := in.label + ": " + in.streamsText()
	if !terminal.IsDir(f.svg) {
		return t.Write(f.svg, func(w io.Writer) error { return report.WriteCharts(w, title, charts) })
	}
	for _, chart := range charts {
		name := filepath.Join(f.svg, replayCharts[chart.Title].file)
		err := t.Write(name, func(w io.Writer) error {
			return report.WriteCharts(w, title, []report.Chart{chart})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (in *inflation) streamsText() string {
	switch {
	case in.stream != nil:
		return "a given stream"
	case len(in.seeds) == 1:
		return fmt.Sprintf("one stream, seed %d", in.seeds[0])
	}
	return fmt.Sprintf("means over %d streams, seeds %d to %d", len(in.seeds), in.seeds[0],
		in.seeds[len(in.seeds)-1])
}

// charts returns the paper's plots: saving, or power where there is no base,
// allocation ratio and fragmentation over the arrived load.
func (in *inflation) charts(runs [][]inflationRun) []report.Chart {
	first := report.Chart{Title: "Power", Y: "EOPC, kW"}
	if in.base >= 0 {
		first = report.Chart{Title: "Power saved", Y: "EOPC saved, % of " + in.policies[in.base].Name}
	}
	ratio := report.Chart{Title: "GPU allocation ratio", Y: "GRAR"}
	fragmented := report.Chart{Title: "Expected fragmentation", Y: "F, GPUs"}
	for p := range runs {
		line := func(c *report.Chart, at func(seed, row int) float64) {
			c.X = "arrived load, GPUs asked for / GPUs"
			c.Lines = append(c.Lines, in.meanSeries(runs, p, at))
		}
		line(&first, func(s, row int) float64 {
			power := float64(runs[p][s].Curve[row].Power())
			if in.base < 0 {
				return power / 1000
			}
			return 100 * (1 - power/float64(runs[in.base][s].Curve[row].Power()))
		})
		line(&ratio, func(s, row int) float64 { return runs[p][s].Curve[row].Ratio })
		line(&fragmented, func(s, row int) float64 { return runs[p][s].Curve[row].Fragmented })
	}
	return []report.Chart{first, ratio, fragmented}
}

// meanSeries returns the mean over the streams of a quantity at each point that all curves
// have.
func (in *inflation) meanSeries(runs [][]inflationRun, p int, at func(seed, row int) float64) report.Series {
	rows := math.MaxInt
	for s := range runs[p] {
		rows = min(rows, len(runs[p][s].Curve))
	}
	line := report.Series{Name: in.policies[p].Name, X: make([]float64, rows), Y: make([]float64, rows)}
	for row := range rows {
		line.X[row] = meanSDOf(len(in.seeds), func(s int) float64 { return runs[p][s].Curve[row].Load }).mean
		line.Y[row] = meanSDOf(len(in.seeds), func(s int) float64 { return at(s, row) }).mean
	}
	return line
}
