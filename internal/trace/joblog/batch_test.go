package joblog_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/queue"
)

// sacctOfABatch is what sacct prints, with @ for the day.
var sacctOfABatch = strings.ReplaceAll(`JobID|JobName|User|State|Submit|Start|End|Timelimit|AllocTRES|ReqTRES|NNodes
500|train|ann|COMPLETED|@08:00:00|@08:00:10|@10:00:10|04:00:00|cpu=8,gres/gpu=2,node=1|gres/gpu=2|1
500.batch|batch||COMPLETED|@08:00:10|@08:00:10|@10:00:10||cpu=8,gres/gpu=2,node=1||1
500.extern|extern||COMPLETED|@08:00:10|@08:00:10|@10:00:10||cpu=8,gres/gpu=2,node=1||1
500.0|python||COMPLETED|@08:00:10|@08:00:10|@10:00:10||cpu=8,gres/gpu=2,node=1||1
501|cpu|bob|COMPLETED|@08:01:00|@08:01:10|@09:00:10|04:00:00|cpu=8,mem=64G,node=1|cpu=8|1
502|gone|bob|CANCELLED by 1000|@08:02:00|Unknown|@09:00:10|04:00:00||gres/gpu=1|1
503|wait|bob|PENDING|@08:03:00|Unknown|Unknown|01:30:00||gres/gpu=4,node=1|1
504|run|bob|RUNNING|@08:03:00|@08:05:00|Unknown|01:30:00|gres/gpu=4,node=1|gres/gpu=4|1
505|two|bob|TIMEOUT|@08:04:00|@08:05:00|@09:35:20|01:30:00|gres/gpu:v100=8,gres/gpu=8,node=2|gres/gpu=8|2
`, "@", "2026-03-02T")

func readBatch(text string) (*queue.Batch, error) {
	return joblog.ReadBatch(strings.NewReader(text), "log.txt", queue.Auto, &queue.TableOptions{})
}

func TestABatchOfWhatSacctPrintsHasJobsAndNoSteps(t *testing.T) {
	b, err := readBatch(sacctOfABatch)
	if err != nil {
		t.Fatal(err)
	}
	job := func(
		id, user, name string, arrival, runtime, limit float64, model string, gpus, nodes int,
	) queue.Job {
		j := queue.NewJob(id)
		j.User, j.Name, j.Arrival, j.Runtime, j.Limit, j.Nodes = user, name, arrival, runtime, limit, nodes
		j.GPUs = []queue.GPUCount{{Model: model, Count: gpus}}
		j.Pos = queue.Position{File: "log.txt"}
		return j
	}
	want := []queue.Job{
		job("500", "ann", "train", 0, 7200, 14400, "", 2, 0),
		job("503", "bob", "wait", 180, 5400, 5400, "", 4, 0),
		job("505", "bob", "two", 240, 5420, 5420, "v100", 8, 2),
	}
	if !reflect.DeepEqual(b.Jobs, want) {
		t.Errorf("\n got %+v\nwant %+v", b.Jobs, want)
	}
	const says = "log.txt: read as what sacct prints: steps folded into their jobs: 3, waiting jobs planned " +
		"for as long as their limits: 1, jobs without GPUs passed over: 1, jobs that never ran passed over: 1, " +
		"jobs that run passed over: 1"
	if len(b.Warnings) != 1 || b.Warnings[0].Error() != says {
		t.Errorf("warnings %v, want %s", b.Warnings, says)
	}
}

func TestWhatSacctPrintsIsReadWhateverSeparatesItsColumns(t *testing.T) {
	want, err := readBatch(sacctOfABatch)
	if err != nil {
		t.Fatal(err)
	}
	for _, delimiter := range []string{";", "\t", "|7391824450", "^^"} {
		got, err := readBatch(strings.ReplaceAll(sacctOfABatch, "|", delimiter))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v\n got %+v\nwant %+v", delimiter, err, got, want)
		}
	}
}

func TestStepsAreNeverPlannedAsJobs(t *testing.T) {
	for text, want := range map[string]string{
		"JobID|Elapsed|AllocTRES\n500|02:00:00|gres/gpu=2\n500.batch|02:00:00|gres/gpu=2\n": `log.txt:3:1: job "500.batch" is a step of job "500"`,
		"id,runtime_s\n7.extern,60\n":              `log.txt:2:1: job "7.extern" is a step of job "7"`,
		strings.SplitAfter(sacctOfABatch, "\n")[0]: "log.txt: batch has no jobs, want jobs with GPUs that ran",
	} {
		if _, err := readBatch(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{
		"id,runtime_s\n1.5,60\n", "JobID|Elapsed|State\n500|02:00:00|COMPLETED\n",
		"JobID|State|Start|End|runtime_s\n",
	} {
		if _, err := readBatch(text); err != nil && strings.Contains(err.Error(), "sacct") {
			t.Errorf("%q: %v, want it read as a batch", text, err)
		}
	}
}
