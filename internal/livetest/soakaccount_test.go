package livetest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// jobEnd is what Slurm says of a job that ended.
type jobEnd struct {
	name, state string
	at          time.Time
}

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
		id, name, state, at := int64(0), "", "", time.Time{}
		for field := range strings.FieldsSeq(s.part) {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "JobId":
				id, _ = strconv.ParseInt(value, 10, 64)
			case "Name":
				name = value
			case "JobState":
				state = value
			case "EndTime":
				at, _ = time.ParseInLocation("2006-01-02T15:04:05", value, time.Local)
			}
		}
		s.ends[id], s.part = jobEnd{name, state, at}, ""
	}
}

// finish takes everything back while jobs wait, waits until nothing is left to do, and looks for what must
// not be.
func (s *soak) finish() {
	s.Helper()
	for len(s.later) > 0 {
		s.keep(time.Now())
		<-time.After(20 * time.Millisecond)
	}
	s.slurm("scontrol", "reconfigure") // as after each start of slurmctld, see countsGPUsAnew
	s.takesBack()
	s.within(patience, "the queue is empty", func() bool {
		jobs, err := s.trySlurm("squeue", "-h", "-o", "%A %r")
		s.release(jobs)
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

// release lets go of jobs that slurmctld holds because their launch failed: it gave up waiting for a node's word
// on the Prolog while munged or slurmd was away, and neither called the Prolog nor failed it.
func (s *soak) release(queue string) {
	for line := range strings.Lines(queue) {
		if id, why, _ := strings.Cut(strings.TrimSpace(line), " "); why == "launch failed requeued held" {
			s.Logf("job %s: %s", id, why)
			_, _ = s.trySlurm("scontrol", "release", id)
		}
	}
}

// takesBack has jobs wait, some with a nice of their user's, lets the plan order them, and takes that back. No
// lot is drawn any more: jobs that are held out stay where they are, and there may be no others to move.
func (s *soak) takesBack() {
	s.Helper()
	s.write("config.toml", strings.Replace(soakConfig, "hold_out = 0.1", "hold_out = 0", 1), 0o644)
	s.reloadController()
	s.within(patience, "nothing is left to steer", func() bool { return s.steered().Nice == 0 })
	own := make(map[string]string)
	const waiting = 3
	jobs := make([]string, 0, len(s.names)+waiting+1)
	for range s.names {
		jobs = append(jobs, name(s.submit("sleep 600", "--gres=gpu:8", "-N1", "-t", "60", "-J", "CANCELLED")))
	}
	// Else the short one finds a GPU, and nobody is to be put behind it.
	s.within(patience, "all GPUs are taken", func() bool {
		running := s.slurm("squeue", "-h", "-t", "RUNNING", "-o", "%T", "-j", strings.Join(jobs, ","))
		return len(strings.Fields(running)) == len(s.names)
	})
	for i := range waiting {
		nice := strconv.Itoa(3 * i)
		job := name(s.submit("sleep 600", "--gres=gpu:8", "-N1", "-t", "50", "--nice="+nice, "-J", "CANCELLED"))
		jobs, own[job] = append(jobs, job), nice
	}
	// It takes no time, and comes before the others.
	jobs = append(jobs, name(s.submit(": workload 0; sleep 0.0", "--gres=gpu:1", "-t", "5", "-J", "CANCELLED")))
	s.within(patience, "the queue is put in the plan's order", func() bool { return s.steered().Nice > 0 })
	s.allUndone(own)
	// What runs keeps what it was submitted with, as it may be requeued: those that fill nodes, and the
	// short one.
	runs := len(s.names) + 1
	if now := s.steered(); now.Nice > runs || now.Prefer > 0 || now.Weights > 0 {
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
func (s *soak) excuse(c *hookCall, said string) string {
	const hook = 1800 * time.Millisecond // of the two seconds that it waits
	for _, w := range s.missing[c.node] {
		if c.end.After(w.from) && (w.to.IsZero() || c.begin.Before(w.to.Add(time.Second))) {
			return "its agent was away or had a full disk"
		}
	}
	switch {
	case c.end.Sub(c.begin) > hook:
		return "its agent didn't answer in time"
	case c.gpus == "": // of jobs that start in the first seconds of a slurmctld, seen on 22.05
		return "Slurm told its Prolog of no GPUs"
	case strings.Contains(said, "job "+name(c.job)+": nothing tells which GPU"):
		return "gres.conf couldn't be read in time"
	case strings.Contains(said, "job "+name(c.job)+": GPU "): // by a driver that failed when the agent began
		return "its agent couldn't open the GPU"
	}
	return ""
}

// recordedRun is what is recorded of a run.
type recordedRun struct {
	state     string
	unmatched bool
}

// placed is what hooks and records say of a job on a node.
type placed struct {
	prologs []hookCall
	epilogs int
	runs    []recordedRun
}

// account holds what is recorded against what Slurm and the hooks say: each job ended as it was to, and each
// of its runs has one outcome, or a reason why it has none. All epds must have ended.
func (s *soak) account() (runs int, none map[string]int) {
	s.Helper()
	all, starts := make(map[place]*placed), make(map[int64]int)
	of := func(job int64, node string) *placed {
		at := place{job, node}
		if all[at] == nil {
			all[at] = new(placed)
		}
		return all[at]
	}
	for _, c := range s.hookCalls("prolog") {
		starts[c.job]++
		p := of(c.job, c.node)
		p.prologs = append(p.prologs, c)
	}
	for _, c := range s.hookCalls("epilog") {
		of(c.job, c.node).epilogs++
	}
	for at, list := range s.outcomesByPlace() {
		of(at.job, at.node).runs = list
	}
	none = make(map[string]int)
	s.endedAsMeant(func(job int64) bool { return starts[job] > 0 }, none)
	said := s.read("prolog.log")
	for at, p := range all {
		runs += max(len(p.prologs), p.epilogs)
		s.accountAt(at, p, starts[at.job] == 1, said, none)
	}
	return runs, none
}

// endedAsMeant checks how jobs ended. A slurmctld that begins may not know yet which GPUs its nodes have: it
// refuses some jobs then, and has some that wait fail, on 22.05.
func (s *soak) endedAsMeant(ran func(job int64) bool, none map[string]int) {
	s.Helper()
	s.readEnds()
	if n := len(s.ends); n < s.submitted || n > s.submitted+s.unsure {
		s.Errorf("Slurm says of %d jobs how they ended, want %d and at most %d more", n, s.submitted, s.unsure)
	}
	for id, e := range s.ends {
		tooLate := e.name == "CANCELLED" && e.state == "COMPLETED" // to be cancelled
		switch {
		case e.state == e.name || tooLate:
		case e.state == "FAILED" && !ran(id) && s.wasRefusedNear(e.at):
			none["failed in the queue of a slurmctld that knew no GPUs"]++
		default:
			s.Errorf("job %d is %s, want %s", id, e.state, e.name)
		}
	}
}

// wasRefusedNear reports whether slurmctld refused jobs a minute before or after.
func (s *soak) wasRefusedNear(at time.Time) bool {
	return slices.ContainsFunc(s.refused, func(t time.Time) bool { return at.Sub(t).Abs() < time.Minute })
}

// accountAt accounts for the runs of a job on a node; once: it is the only run of the job. Why others have no
// outcome is counted.
func (s *soak) accountAt(at place, p *placed, once bool, said string, none map[string]int) {
	s.Helper()
	count := max(len(p.prologs), p.epilogs)
	lacking := count - len(p.runs)
	without := func(why string) {
		if lacking > 0 && why != "" {
			none[why]++
			lacking--
		}
	}
	for range p.epilogs - len(p.prologs) { // the second run of a job, some seconds after the first one
		without("Slurm ran no Prolog")
	}
	for i := range p.prologs {
		without(s.excuse(&p.prologs[i], said))
	}
	if lacking != 0 {
		s.Errorf("job %d on %s: outcomes %+v, want %d, and nothing says why", at.job, at.node, p.runs, count)
	}
	for _, r := range p.runs {
		switch end := s.ends[at.job].state; {
		case r.unmatched:
			none["(known by its Epilog alone)"]++
		case r.state == "":
			none["(how it ended isn't known)"]++
		case r.state == "REQUEUED" && end == "CANCELLED":
			none["(put back into the queue, and cancelled there)"]++
		case once && count == 1 && r.state != end:
			s.Errorf("job %d on %s is recorded as %q, Slurm says %s", at.job, at.node, r.state, end)
		}
	}
}

// outcomesByPlace returns all outcomes.
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
