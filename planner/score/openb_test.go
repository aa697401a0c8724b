package score_test

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner/fleet"
)

// gpuWatts are the idle and busy watts of the GPU models of the openb trace
// (PWR+FGD paper, table II, by the names of the node list).
var gpuWatts = map[string][2]float64{
	"T4": {10, 70}, "P100": {25, 250}, "V100M16": {30, 300}, "V100M32": {30, 300},
	"A10": {30, 150}, "G2": {30, 150}, "G3": {50, 400},
}

// kindOf returns a kind of node with the paper's power: Xeon packages of 16 cores,
// 15 W idle and 120 W busy.
func kindOf(model string, cpu, mem int64, gpus int) *fleet.Kind {
	w := gpuWatts[model]
	k := &fleet.Kind{Model: model, CPU: cpu, Mem: mem, GPUs: gpus}
	k.Power.GPUIdle, k.Power.GPUBusy = watt(w[0]), watt(w[1])
	k.Power.CPUIdle, k.Power.CPUBusy, k.Power.Cores, k.Power.Threads, k.Power.Sleep = 15, 120, 16, 2, 7
	return k
}

// openb is a trace of the shared data.
type openb struct {
	kinds    []*fleet.Kind
	names    []string
	pods     []fleet.Demand
	arrivals []fleet.Demand
}

func loadOpenb(tb testing.TB, trace string) *openb {
	tb.Helper()
	o := &openb{}
	kinds := map[string]*fleet.Kind{}
	for _, row := range shareddata.Rows(tb, shareddata.Path(tb, "openb/nodes_"+trace+"_42.csv")) {
		key := row["model"] + "/" + row["cpu_milli"] + "/" + row["memory_mib"] + "/" + row["gpu"]
		if kinds[key] == nil {
			kinds[key] = kindOf(row["model"], whole(tb, row["cpu_milli"]), whole(tb, row["memory_mib"]),
				int(whole(tb, row["gpu"])))
		}
		o.kinds = append(o.kinds, kinds[key])
		o.names = append(o.names, row["sn"])
	}
	for _, row := range shareddata.Rows(tb, shareddata.Path(tb, "openb/openb_pod_list_"+trace+".csv")) {
		o.pods = append(o.pods, demandOf(tb, row))
	}
	for _, row := range zippedRows(tb, "openb/arrivals_"+trace+"_42.csv.gz") {
		o.arrivals = append(o.arrivals, demandOf(tb, row))
	}
	return o
}

func (o *openb) workload() fleet.Workload { return fleet.NewWorkload(o.pods, fleet.PaperCover) }

func demandOf(tb testing.TB, row map[string]string) fleet.Demand {
	tb.Helper()
	return fleet.Demand{
		CPU: whole(tb, row["cpu_milli"]), Mem: whole(tb, row["memory_mib"]),
		GPUs: int(whole(tb, row["num_gpu"])), Milli: int(whole(tb, row["gpu_milli"])), Spec: row["gpu_spec"],
	}
}

func whole(tb testing.TB, cell string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(cell, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// zippedRows reads a compressed CSV file of the shared data.
func zippedRows(tb testing.TB, name string) []map[string]string {
	tb.Helper()
	f, err := os.Open(shareddata.Path(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	r := csv.NewReader(unzipped)
	header, err := r.Read()
	if err != nil {
		tb.Fatal(err)
	}
	var rows []map[string]string
	for {
		record, err := r.Read()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			tb.Fatal(err)
		}
		row := make(map[string]string, len(header))
		for i, name := range header {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
}

// joined writes GPUs as the decision files do.
func joined(indexes []int) string {
	texts := make([]string, len(indexes))
	for i, g := range indexes {
		texts[i] = strconv.Itoa(g)
	}
	return strings.Join(texts, "-")
}

func trouble(seq int, format string, args ...any) string {
	return fmt.Sprintf("arrival %d: ", seq) + fmt.Sprintf(format, args...)
}
