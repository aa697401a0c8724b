package livetest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// jobEnd is what Slurm says of a job that ended.
type jobEnd struct{ name, state string }

// readEnds reads what slurmctld has written of jobs that ended; a job that was put back into the queue ends
// again later.
func (s *soak) readEnds() {
	for {
		text, err := s.log.ReadString('\n')
		if s.part += text; err != nil {
			if !errors.Is(err, io.EOF) {
				s.Error(err)
			}
			break
		}
		id, name, state := int64(0), "", ""
		for field := range strings.FieldsSeq(s.part) {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "JobId":
				id, _ = strconv.ParseInt(value, 10, 64)
			case "Name":
				name = value
			case "JobState":
				state = value
			}
		}
		s.ends[id], s.part = jobEnd{name, state}, ""
	}
	s.watch.ended.Store(int64(len(s.ends)))
}

// finish takes everything back while jobs wait, waits until nothing is left to do, and looks for what must
// not be.
func (s *soak) finish() {
	s.Helper()
	s.takesBack()
	s.within(patience, "the queue is empty", func() bool {
		jobs, err := s.trySlurm("squeue", "-h", "-o", "%A")
		return err == nil && jobs == ""
	})
	for _, node := range s.names {
		s.within(patience, "everything of "+node+" is recorded", func() bool {
			st := s.status(node)
			return st != nil && len(st.Runs) == 0 && st.Unrecorded == 0 && len(s.left(node)) == 0 &&
				len(s.hardware(node)) == 0
		})
	}
	s.undrained()
	if c := s.says(controller).Controller; c.Lost > 0 || c.Unwritten > 0 || c.Trouble != "" {
		s.Errorf("the controller lost %d records, %d wait; %s", c.Lost, c.Unwritten, c.Trouble)
	}
}

// takesBack has jobs wait, some with a nice of their user's, lets the plan order them, and takes that back.
func (s *soak) takesBack() {
	s.Helper()
	own := make(map[string]string)
	var jobs []string
	for range s.names {
		jobs = append(jobs, name(s.submit("sleep 600", "--gres=gpu:8", "-N1", "-t", "60", "-J", "CANCELLED")))
	}
	for i := range 3 {
		nice := strconv.Itoa(3 * i)
		job := name(s.submit("sleep 600", "--gres=gpu:8", "-N1", "-t", "50", "--nice="+nice, "-J", "CANCELLED"))
		jobs, own[job] = append(jobs, job), nice
	}
	// It takes no time, and comes before the others.
	jobs = append(jobs, name(s.submit(": workload 0; sleep 0.0", "--gres=gpu:1", "-t", "5", "-J", "CANCELLED")))
	s.within(patience, "the queue is put in the plan's order", func() bool { return s.steered().Nice > 0 })
	s.allUndone(own)
	if now := s.steered(); now.Nice > 0 || now.Prefer > 0 || now.Weights > 0 {
		s.Errorf("left are %+v", now)
	}
	s.slurm("scancel", jobs...)
	s.submitted += len(jobs)
}

// hookCall is a Prolog or an Epilog.
type hookCall struct {
	job        int64
	node       string
	begin, end time.Time
	gpus       string
}

func (s *soak) hookCalls(kind string) []hookCall {
	var all []hookCall
	for line := range strings.Lines(s.read(kind + ".calls")) {
		var c hookCall
		var begin, end int64
		// Without GPUs there is an error, too.
		if n, err := fmt.Sscan(line, &c.job, &c.node, &begin, &end, &c.gpus); n < 4 {
			s.Errorf("%s.calls: %q: %v", kind, line, err)
		}
		c.begin, c.end = time.Unix(0, begin), time.Unix(0, end)
		all = append(all, c)
	}
	return all
}

// place is a job on a node.
type place struct {
	job  int64
	node string
}

// excuse is why nothing may be known of a run, by its Prolog; "": there is no reason.
func (s *soak) excuse(c *hookCall) string {
	const hook = 1800 * time.Millisecond // of the two seconds that it waits
	for _, w := range s.missing[c.node] {
		if c.end.After(w.from) && (w.to.IsZero() || c.begin.Before(w.to.Add(time.Second))) {
			return "its agent was away or had a full disk"
		}
	}
	if c.end.Sub(c.begin) > hook {
		return "its agent didn't answer in time"
	}
	if c.gpus == "" { // of jobs that start as slurmctld is started again, seen on 22.05
		return "Slurm told its Prolog of no GPUs"
	}
	return ""
}

// recordedRun is what is recorded of a run.
type recordedRun struct {
	state     string
	unmatched bool
}

// account holds what is recorded against what Slurm and the hooks say: each job ended as it was to, and each
// of its runs has one outcome, or a reason why it has none. All epds must have ended.
func (s *soak) account() (runs int, none map[string]int) {
	s.Helper()
	s.readEnds()
	if len(s.ends) != s.submitted {
		s.Errorf("Slurm says of %d jobs how they ended, want %d", len(s.ends), s.submitted)
	}
	for id, e := range s.ends {
		if e.state != e.name && !(e.name == "CANCELLED" && e.state == "COMPLETED") {
			s.Errorf("job %d is %s, want %s", id, e.state, e.name)
		}
	}
	recorded := s.outcomesByPlace()
	prologs, epilogs, starts := make(map[place][]hookCall), make(map[place]int), make(map[int64]int)
	for _, c := range s.hookCalls("prolog") {
		starts[c.job]++
		prologs[place{c.job, c.node}] = append(prologs[place{c.job, c.node}], c)
	}
	for _, c := range s.hookCalls("epilog") {
		epilogs[place{c.job, c.node}]++
	}
	none = make(map[string]int)
	for at, calls := range prologs {
		count := max(len(calls), epilogs[at])
		runs += count
		states := recorded[at]
		delete(recorded, at)
		if len(states) > count {
			s.Errorf("job %d on %s: outcomes %+v of %d runs", at.job, at.node, states, count)
		}
		lacking := count - len(states)
		without := func(why string) {
			if lacking > 0 && why != "" {
				none[why]++
				lacking--
			}
		}
		for range epilogs[at] - len(calls) { // the second run of a job, some seconds after the first one
			without("Slurm ran no Prolog")
		}
		for i := range calls {
			without(s.excuse(&calls[i]))
		}
		if lacking > 0 {
			s.Errorf("job %d on %s: outcomes %+v, want %d: of the others nobody knows why", at.job, at.node, states,
				count)
		}
		for _, r := range states {
			switch end := s.ends[at.job].state; {
			case r.unmatched:
				none["(known by its Epilog alone)"]++
			case starts[at.job] == 1 && count == 1 && r.state != end:
				s.Errorf("job %d on %s is recorded as %q, Slurm says %s", at.job, at.node, r.state, end)
			}
		}
	}
	for at, states := range recorded {
		s.Errorf("job %d on %s: outcomes %+v, and no Prolog", at.job, at.node, states)
	}
	return runs, none
}

// outcomesByPlace are all outcomes.
func (s *soak) outcomesByPlace() map[place][]recordedRun {
	s.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(s.dir, controller, "records.db"))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was written
	rows, err := db.QueryContext(s.Context(), "SELECT job_id, node, exit_state, unmatched FROM outcomes")
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // as above
	all := make(map[place][]recordedRun)
	for rows.Next() {
		var at place
		var r recordedRun
		if err := rows.Scan(&at.job, &at.node, &r.state, &r.unmatched); err != nil {
			s.Fatal(err)
		}
		all[at] = append(all[at], r)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return all
}
