package control

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// slowQueue is a Slurm before 23.02 whose list of all jobs doesn't come in time. It
// has any job, as nobody, since a minute after the tests' start.
type slowQueue struct {
	state atomic.Pointer[string] // of all jobs
	lists atomic.Int64           // questions for all jobs
}

func (q *slowQueue) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	last := args[len(args)-1]
	format, columns := strings.CutPrefix(last, "--Format=")
	switch {
	case last == "--version":
		return []byte("slurm-wlm 22.05.8\n"), nil
	case name == "scontrol":
		return fmt.Appendf(nil, "JobId=%s JobName=train\n", last), nil
	case !columns:
		q.lists.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	id := strings.TrimPrefix(args[len(args)-2], "--jobs=")
	at := start.Add(time.Minute).Format("2006-01-02T15:04:05")
	values := map[string]string{
		"JobID": id, "UserID": "1000", "UserName": "ada", "State": *q.state.Load(), "PriorityLong": "1",
		"TimeLimit": "10:00", "NumNodes": "1",
		"SubmitTime": at, "StartTime": at, "EndTime": at, "Partition": "gpu", "NodeList": "n1",
		"tres-alloc": "cpu=1,gres/gpu=1", "Name": "train",
		"Nice": "0", "RestartCnt": "0",
	}
	var b strings.Builder
	for field := range strings.SplitSeq(format, ",") {
		column, delimiter, _ := strings.Cut(field, ":0")
		value, known := values[column]
		if !known {
			value = "N/A"
		}
		b.WriteString(value + delimiter)
	}
	return []byte(b.String() + "\n"), nil
}

func TestALongQueueOfAnOldSlurmHidesNoJobThatStartsOrEnds(t *testing.T) {
	q := &slowQueue{}
	q.state.Store(new("RUNNING"))
	r := newRig(t, func(o *Options) { o.Resolve = slurm.NewClient(q, epdapi.JobWait).Job })
	r.clock.move(time.Minute + time.Second)
	var all sync.WaitGroup
	const atOnce = 12
	for id := slurm.JobID(1); id <= atOnce; id++ {
		all.Go(func() {
			d, err := r.Decide(context.Background(), ask(id))
			if err != nil || d.Workload == "" || d.Limit != live.LimitOf(10*time.Minute) ||
				strings.Contains(d.Reason, "isn't known") {
				t.Errorf("job %d: %+v, %v", id, d, err)
			}
		})
	}
	all.Wait()
	look := func(want live.Life) {
		t.Helper()
		for id := slurm.JobID(1); id <= atOnce; id++ {
			all.Go(func() {
				o, err := r.Outlook(context.Background(), epdapi.OutlookRequest{
					Job: id, Node: "n1", RunID: ask(id).RunID,
				})
				if err != nil || o.Life != want || want == live.LifeGone &&
					!o.Ended.Equal(start.Add(time.Minute)) {
					t.Errorf("job %d: %+v, %v; want %s", id, o, err, want)
				}
			})
		}
		all.Wait()
	}
	r.clock.move(2 * defaultFresh)
	look(live.LifeAlive)
	q.state.Store(new("COMPLETED")) // and their Epilogs are lost
	r.clock.move(2 * defaultFresh)
	look(live.LifeGone)
	if n := q.lists.Load(); n != 0 {
		t.Errorf("the whole queue was asked for %d times", n)
	}
}
