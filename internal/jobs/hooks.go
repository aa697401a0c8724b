package jobs

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// prologSilence is how many reports an agent makes without a Prolog, after Slurm listed its job as begun,
// until the Prolog counts as missing: the second one was written after the first one's answer, and so after
// the list.
const prologSilence = 2

// maxMissed bounds the nodes that are named.
const maxMissed = 1000

// HookWatch finds the jobs with GPUs that started without their Prolog having reached the agent of their
// node, and those that were submitted without a call of job_submit.lua. It judges only jobs that were
// submitted, or started, while this controller ran and, for the Prolog, while the node's agent did.
type HookWatch struct {
	clock func() time.Time

	mu      sync.Mutex
	since   time.Time             // before it nobody saw what came
	came    map[jobNode]time.Time // Prologs that came, or weren't to come, and when that was known
	awaited map[jobNode]awaited   // jobs that began whose Prologs didn't come yet
	missed  map[string]*epdapi.MissedProlog
	noToken int64 // submissions without a token
	tokens  int64
	hears   bool      // some submission got a token
	unheard []unheard // jobs without one whose scripts are to be asked for
}

// unheard is a job whose submission wasn't heard of.
type unheard struct {
	job   slurm.JobID
	asked int // how often its script was
}

// jobNode is a job on one of its nodes.
type jobNode struct {
	job  slurm.JobID
	node string
}

// awaited is a Prolog that is awaited.
type awaited struct {
	start   time.Time // of the job, by Slurm
	reports int       // of the node's agent since Slurm listed the job as begun
	counted bool      // it is missing
}

func newHookWatch(clock func() time.Time) *HookWatch {
	return &HookWatch{
		clock: clock, since: clock(), came: make(map[jobNode]time.Time), awaited: make(map[jobNode]awaited),
		missed: make(map[string]*epdapi.MissedProlog),
	}
}

// hasBegun reports whether the Prologs of a job's run are over: it runs, or ran.
func hasBegun(j *slurm.Job) bool {
	switch {
	case j.State.Is(slurm.Configuring) || j.Reason == "Prolog":
		return false
	case j.State.Base == slurm.Running || j.State.Base == slurm.Suspended:
		return true
	case j.State.Base == slurm.Completed || j.State.Base == slurm.Timeout || j.State.Base == slurm.Failed:
		return j.End.Sub(j.Start) > Skew
	}
	return false // others may have ended before their Prologs
}

// SawProlog notes that a node asked for a decision about a job: its Prolog came.
func (w *HookWatch) SawProlog(job slurm.JobID, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(jobNode{job, node})
}

func (w *HookWatch) note(key jobNode) {
	w.came[key] = w.clock()
	if !w.awaited[key].counted {
		delete(w.awaited, key)
	}
}

// takeList takes Slurm's list, for which it was asked at a time. Jobs that aren't on it are forgotten.
func (w *HookWatch) takeList(asked time.Time, list []listed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := w.tracked()
	for i := range list {
		l := &list[i]
		delete(gone, l.id)
		if l.job.GPUs == 0 {
			continue
		}
		start := timeOf(l.job.rareParts().start)
		if !l.begun || start.Before(w.since.Add(Skew)) {
			continue
		}
		names, err := slurm.ExpandHostlist(l.job.rareParts().nodeList)
		if err != nil {
			continue
		}
		for _, node := range names {
			key := jobNode{l.id, node}
			if _, came := w.came[key]; came {
				continue
			}
			if _, waits := w.awaited[key]; !waits {
				w.awaited[key] = awaited{start: start}
			}
		}
	}
	maps.DeleteFunc(w.came, func(k jobNode, at time.Time) bool {
		_, is := gone[k.job]
		return is && at.Before(asked)
	})
	maps.DeleteFunc(w.awaited, func(k jobNode, _ awaited) bool {
		_, is := gone[k.job]
		return is
	})
}

// tracked returns the jobs of which something is kept. They are few beside a long queue.
func (w *HookWatch) tracked() map[slurm.JobID]struct{} {
	ids := make(map[slurm.JobID]struct{})
	for k := range w.came {
		ids[k.job] = struct{}{}
	}
	for k := range w.awaited {
		ids[k.job] = struct{}{}
	}
	return ids
}

// maxUnheard bounds the jobs whose scripts are to be asked for.
const maxUnheard = 1000

// countSubmission counts a job that wasn't known before whether it has a token. One that was requeued has another
// submit time.
func (w *HookWatch) countSubmission(id slurm.JobID, job *Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hears = w.hears || job.Token != ""; job.GPUs == 0 {
		return
	}
	if job.Token == "" && len(w.unheard) < maxUnheard {
		w.unheard = append(w.unheard, unheard{job: id})
	}
	switch {
	case job.Restarts() > 0 || timeOf(job.Submitted).Before(w.since.Add(Skew)):
	case job.Token == "":
		w.noToken++
	default:
		w.tokens++
	}
}

// noteSubmission notes that a submission came by job_submit.lua, whose job may not be known for a while.
func (w *HookWatch) noteSubmission() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hears = true
}

// hearsSubmissions reports whether submissions come by job_submit.lua.
func (w *HookWatch) hearsSubmissions() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hears
}

// nextUnheard takes out a job whose submission wasn't heard of.
func (w *HookWatch) nextUnheard() (u unheard, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.unheard) == 0 {
		return unheard{}, false
	}
	u, w.unheard = w.unheard[0], w.unheard[1:]
	u.asked++
	return u, true
}

// maxScriptQuestions is how often Slurm is asked for a script without an answer: some jobs have none.
const maxScriptQuestions = 3

// askAgain puts back jobs for whose scripts Slurm was asked in vain.
func (w *HookWatch) askAgain(list []unheard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range list {
		if u.asked < maxScriptQuestions && len(w.unheard) < maxUnheard {
			w.unheard = append(w.unheard, u)
		}
	}
}

// Reported takes what a node's agent tells: since when it runs, by the node's clock, and which Prologs it had
// lately; nil: it is of a version that doesn't say.
func (w *HookWatch) Reported(r *epdapi.NodeReport) {
	node, started, prologs := r.Node, r.Started, r.Prologs
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range prologs {
		w.note(jobNode{id, node})
	}
	for key, a := range w.awaited {
		switch {
		case key.node != node || a.counted:
			continue
		case prologs == nil || !started.Before(a.start.Add(-Skew)):
			w.note(key) // nobody can tell: the agent may not have run then
			continue
		}
		if a.reports++; a.reports >= prologSilence {
			a.counted = true
			w.count(key)
		}
		w.awaited[key] = a
	}
}

func (w *HookWatch) count(key jobNode) {
	m := w.missed[key.node]
	if m == nil {
		if len(w.missed) >= maxMissed {
			return
		}
		m = &epdapi.MissedProlog{Node: key.node, Since: w.clock()}
		w.missed[key.node] = m
	}
	m.Jobs++
	m.Last, m.At = key.job, w.clock()
}

// MissedPrologs returns the nodes whose agents had no Prolog of jobs with GPUs that started there, by their
// names, with how many such jobs there were since the controller's start.
func (w *HookWatch) MissedPrologs() []epdapi.MissedProlog {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]epdapi.MissedProlog, 0, len(w.missed))
	for _, m := range w.missed {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b epdapi.MissedProlog) int { return cmp.Compare(a.Node, b.Node) })
	return list
}

// Submissions counts the jobs with GPUs that were submitted since the controller's start: those with a token
// of job_submit.lua's, and those without.
func (w *HookWatch) Submissions() (withToken, without int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens, w.noToken
}

// MissedProlog names the nodes whose agents had no Prolog of a job that Slurm still lists.
func (w *HookWatch) MissedProlog(id slurm.JobID) (nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, a := range w.awaited {
		if key.job == id && a.counted {
			nodes = append(nodes, key.node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
