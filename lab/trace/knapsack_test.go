package trace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

const queueHeader = "job_id,arrival_s,type,gpus_a,gpus_b,t_a_s,t_b_s,e_a_kwh,e_b_kwh,pred_t_a_s,pred_t_b_s," +
	"pred_e_a_kwh,pred_e_b_kwh\n"

func TestAQueueHasPredictionsAndTruth(t *testing.T) {
	jobs, err := trace.ReadKnapsack(strings.NewReader(queueHeader+
		"x,5,bert,2,4,100,200,0.5,0.25,110,210,0.6,0.3\n"), "q.csv", trace.Independent)
	if err != nil {
		t.Fatal(err)
	}
	want := trace.KnapsackJob{
		Pos: queue.Position{File: "q.csv", Line: 2, Column: 5}, ID: "x", Type: "bert", Arrival: 5,
		GPUs:     [2]int{2, 4},
		Actual:   [2]trace.KnapsackRun{{Seconds: 100, KWh: 0.5}, {Seconds: 200, KWh: 0.25}},
		Forecast: [2]trace.KnapsackRun{{Seconds: 110, KWh: 0.6}, {Seconds: 210, KWh: 0.3}},
	}
	if len(jobs) != 1 || jobs[0] != want {
		t.Errorf("got %+v, want %+v", jobs, want)
	}
	predicted, truth, err := trace.KnapsackProblem(jobs, &trace.KnapsackPool{Name: "p", GPUs: [2]int{3, 5}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		problem *planner.Problem
		seconds float64
		kWh     float64
	}{{"predicted", predicted, 210, 0.3}, {"true", truth, 200, 0.25}} {
		onB := c.problem.Tasks[0].Options[1]
		at := onB.Response.Default()
		if kWh := float64(at.Energy) * float64(onB.GPUs) / 3.6e6; at.Time != c.seconds ||
			kWh < 0.999999*c.kWh || kWh > 1.000001*c.kWh {
			t.Errorf("%s: %v s and %v kWh on B, want %v and %v", c.name, at.Time, kWh, c.seconds, c.kWh)
		}
	}
}

func TestTheCoupledModelHasColumnsOfItsOwn(t *testing.T) {
	header := "job_id,arrival_s,type,gpus_a,gpus_b,c_t_a_s,c_t_b_s,c_e_a_kwh,c_e_b_kwh,c_pred_t_a_s," +
		"c_pred_t_b_s,c_pred_e_a_kwh,c_pred_e_b_kwh\n"
	text := header + "x,5,bert,2,4,1,2,3,4,5,6,7,8\n"
	jobs, err := trace.ReadKnapsack(strings.NewReader(text), "q.csv", trace.Coupled)
	if err != nil {
		t.Fatal(err)
	}
	if jobs[0].Forecast[1] != (trace.KnapsackRun{Seconds: 6, KWh: 8}) {
		t.Errorf("forecast %+v", jobs[0].Forecast)
	}
	if _, err := trace.ReadKnapsack(strings.NewReader(text), "q.csv", trace.Independent); err == nil {
		t.Error("columns of the other energy model are accepted")
	}
}

func TestBadQueuesAreRefusedWithTheirPosition(t *testing.T) {
	const row = "x,5,bert,2,4,100,200,0.5,0.25,110,210,0.6,0.3\n"
	for _, c := range []struct{ text, where, what string }{
		{"", "q.csv", "want a header"},
		{"job_id,type\n", "q.csv:1", "column arrival_s is missing"},
		{queueHeader, "q.csv:1", "no jobs"},
		{queueHeader + "x,5\n", "q.csv:2:3", "cells in this row: 2, want 13"},
		{queueHeader + row + row, "q.csv:3:1", "line 2 already"},
		{queueHeader + strings.Replace(row, "x,", ",", 1), "q.csv:2:1", "job_id is empty"},
		{queueHeader + strings.Replace(row, ",5,", ",-5,", 1), "q.csv:2:3", "arrival_s is \"-5\""},
		{queueHeader + strings.Replace(row, ",2,4,", ",0,4,", 1), "q.csv:2:10", "gpus_a is 0"},
		{queueHeader + strings.Replace(row, ",2,4,", ",2,65,", 1), "q.csv:2:12", "gpus_b is \"65\""},
		{queueHeader + strings.Replace(row, ",100,", ",0,", 1), "q.csv:2:14", "t_a_s is \"0\""},
		{queueHeader + strings.Replace(row, ",0.25,", ",NaN,", 1), "q.csv:2:26", "e_b_kwh is \"NaN\""},
		{queueHeader + strings.Replace(row, ",0.3\n", ",Inf\n", 1), "q.csv:2:43", "pred_e_b_kwh is \"Inf\""},
	} {
		_, err := trace.ReadKnapsack(strings.NewReader(c.text), "q.csv", trace.Independent)
		wantPosition(t, err, c.where, c.what)
	}
}

func TestBadPoolsAreRefusedWithTheirPosition(t *testing.T) {
	const header = "instance,jobs,gpus_type_a,gpus_type_b\n"
	for _, c := range []struct{ text, where, what string }{
		{"instance,gpus_type_a\n", "q.csv:1", "column gpus_type_b is missing"},
		{header + "k,1,0,4\n", "q.csv:2:5", "gpus_type_a is 0"},
		{header + "k,1,4,x\n", "q.csv:2:7", "gpus_type_b is \"x\""},
	} {
		_, err := trace.ReadKnapsackPools(strings.NewReader(c.text), "q.csv")
		wantPosition(t, err, c.where, c.what)
	}
}

// wantPosition checks that an error says where and what.
func wantPosition(t *testing.T, err error, where, what string) {
	t.Helper()
	var position *queue.SyntaxError
	if !errors.As(err, &position) || !strings.HasPrefix(err.Error(), where+":") ||
		!strings.Contains(err.Error(), what) {
		t.Errorf("error %v, want %s: … %s", err, where, what)
	}
}

func FuzzReadKnapsack(f *testing.F) {
	f.Add(queueHeader + "x,5,bert,2,4,100,200,0.5,0.25,110,210,0.6,0.3\n")
	f.Add("job_id,arrival_s\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := trace.ReadKnapsack(strings.NewReader(text), "q.csv", trace.Independent)
		if err != nil {
			return
		}
		predicted, truth, err := trace.KnapsackProblem(jobs, &trace.KnapsackPool{
			Name: "p", GPUs: [2]int{8, 8},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*planner.Problem{predicted, truth} {
			if err := p.Validate(); err != nil {
				t.Errorf("accepted, but %v", err)
			}
		}
	})
}
