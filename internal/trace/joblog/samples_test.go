package joblog_test

import (
	"os"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/trace/joblog"
)

// sample returns a log that a real Slurm wrote.
func sample(t *testing.T, name string) ([]record.HistoryJob, *joblog.Tally) {
	t.Helper()
	file, err := os.Open(shareddata.Path(t, "../slurm-lab/samples/"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var jobs []record.HistoryJob
	tally, err := joblog.ReadSacct(file, name, &joblog.Options{}, keep(&jobs))
	if err != nil {
		t.Fatal(err)
	}
	return jobs, tally
}

func TestTextAndJSONOfARealSlurmTellTheSame(t *testing.T) {
	text, tally := sample(t, "sacct-us-delimited.txt")
	fromJSON, other := sample(t, "sacct.json")
	byID := map[string]record.HistoryJob{}
	for _, p := range fromJSON {
		byID[p.JobID] = p
	}
	for _, p := range text {
		q, ok := byID[p.JobID]
		if !ok {
			t.Errorf("job %s is not in the JSON", p.JobID)
			continue
		}
		if string(p.Name) != string(q.Name) || !p.Submitted.Equal(q.Submitted) ||
			p.RunTime() != q.RunTime() || p.GPUs != q.GPUs ||
			p.State != q.State || p.Limit != q.Limit || p.Partition != q.Partition {
			t.Errorf("job %s: text %+v, JSON %+v", p.JobID, p, q)
		}
	}
	if len(text) != len(fromJSON) || tally.NeverRan != other.NeverRan || tally.SkippedLines() != 0 {
		t.Errorf("%d jobs of text, %d of JSON: %+v", len(text), len(fromJSON), tally)
	}
	checkTable(t, slices.Concat(text))
}
