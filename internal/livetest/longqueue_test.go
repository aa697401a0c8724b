package livetest_test

import (
	"testing"

	"github.com/epplan/epplan/internal/store/record"
)

// Of a queue of many thousands Slurm's list takes longer than a Prolog waits. Here it
// never comes.
func TestJobsThatStartAtOnceAreKnownWithoutAListOfTheQueue(t *testing.T) {
	l := newLab(t, setup{config: enforce, squeue: `case "$*" in *--jobs=*) ;; *) exec sleep 600 ;; esac`})
	jobs := make([]int64, 0, 2)
	for range cap(jobs) {
		job := l.known(func() int64 { return l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", "-t", "10") })
		l.ends(job, "COMPLETED")
		jobs = append(jobs, job)
	}
	l.recordedBy("n1", 2)
	l.undrained()
	if s := l.says("n1").Controller; s == nil || s.Jobs > int(jobs[len(jobs)-1]) { // the first job's number is 1
		t.Errorf("a list came after all: %+v", s)
	}
	for _, job := range jobs {
		if d := l.decisions(job); len(d) != 1 || d[0].Workload == "" {
			t.Errorf("job %d: decisions %+v", job, d)
		}
		if o := l.once("n1", job, record.Completed); o.Workload == "" || o.Submitted.IsZero() {
			t.Errorf("job %d: outcome %+v", job, o)
		}
	}
}
