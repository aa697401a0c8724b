package trace_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/lab/trace"
)

func FuzzReadPodsReturnsTasksThatMeanSomethingOrAnError(f *testing.F) {
	f.Add(podHeader + "a,1,1,1,500,T4|P100\nb,1,1,0,,\n")
	f.Add(timedHeader + "1,1,8,1000,1,2.5,\n")
	f.Add("\ufeff\"name\",cpu_milli\n\"a\"\"b\",1\n")
	f.Fuzz(func(t *testing.T, in string) {
		pods, err := trace.ReadPods(strings.NewReader(in), "t.csv")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := trace.WritePods(&b, pods); err != nil {
			t.Fatal(err)
		}
		again, err := trace.ReadPods(&b, "t.csv")
		if err != nil || len(again) != len(pods) {
			t.Fatalf("%d tasks were written and %d read: %v", len(pods), len(again), err)
		}
		for i := range pods {
			if err := pods[i].Demand.Validate(); err != nil || pods[i].Demand != again[i].Demand ||
				pods[i].Name != again[i].Name {
				t.Errorf("task %+v, read again %+v: %v", pods[i], again[i], err)
			}
		}
	})
}

func FuzzReadNodesReturnsNodesThatMeanSomethingOrAnError(f *testing.F) {
	f.Add(nodeHeader + "a,1,1,1,T4\n")
	f.Add(rankedHeader + "1,a,1,1,1,T4\n0,b,1,1,8,G2\n")
	profiles := config.BuiltinProfiles()
	f.Fuzz(func(t *testing.T, in string) {
		rows, err := trace.ReadNodes(strings.NewReader(in), "t.csv")
		if err != nil {
			return
		}
		kinds, err := trace.Kinds(rows, "t.csv", profiles)
		if err != nil {
			return
		}
		for i, k := range kinds {
			if err := k.Validate(); err != nil || k.Model != rows[i].Model {
				t.Errorf("node %+v is of kind %+v: %v", rows[i], k, err)
			}
		}
	})
}

func FuzzReadArrivalsReturnsTasksOfTheListOrAnError(f *testing.F) {
	pods, err := trace.ReadPods(strings.NewReader(podHeader+"a,1,1,1,500,\nb,1,1,0,0,\n"), "t.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(arrivalHeader + "0,1,b,1,1,0,0,\n1,0,a,1,1,1,500,\n")
	f.Add("seq,pod_row\n0,0\n")
	f.Fuzz(func(t *testing.T, in string) {
		arrivals, err := trace.ReadArrivals(strings.NewReader(in), "t.csv", pods)
		if err != nil {
			return
		}
		for _, a := range arrivals {
			if a.Pod < 0 || a.Pod >= len(pods) || a.Demand != pods[a.Pod].Demand ||
				a.Name != pods[a.Pod].Name {
				t.Errorf("arrival %+v isn't in the list", a)
			}
		}
	})
}
