package main

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

// The plot of the cost of decisions is of the table that the page has.
const (
	figuresPage = "../../lab/docs/figures.md"
	scalePlot   = "../../lab/docs/placement-scale.svg"
)

// scaleRow is a policy and µs for each decision at three sizes of cluster.
var scaleRow = regexp.MustCompile(`(?m)^\| (\S+) \| ([0-9.]+) µs \| ([0-9.]+) µs \| ([0-9.]+) µs \|$`)

func TestTheScalePlotShowsTheTableOfThePage(t *testing.T) {
	chart := report.Chart{
		Title: "one task placed and one ended, 60 % of the GPUs allocated",
		X:     "number of nodes, as a power of ten", Y: "CPU time, µs",
	}
	for _, row := range scaleRow.FindAllStringSubmatch(commandtest.ReadPage(t, figuresPage), -1) {
		line := report.Series{Name: strings.Trim(row[1], "`")}
		for i, cell := range row[2:] {
			y, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			line.X, line.Y = append(line.X, math.Log10(1000)+float64(i)), append(line.Y, y)
		}
		chart.Lines = append(chart.Lines, line)
	}
	if len(chart.Lines) < 3 {
		t.Fatalf("%d rows of decision costs in %s", len(chart.Lines), figuresPage)
	}
	var drawn bytes.Buffer
	if err := report.WriteCharts(&drawn, "Cost of a placement decision by the size of the cluster",
		[]report.Chart{chart}); err != nil {
		t.Fatal(err)
	}
	underTest().WantPage(t, scalePlot, commandtest.ReadPage(t, scalePlot), drawn.String())
}
