package jobs

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Bounds of what is kept.
const (
	maxJobs    = 500_000
	maxTokens  = 100_000
	maxEnded   = 50_000
	tokenTrust = 7 * 24 * time.Hour
	// tokenSettled is the age from which on a submission is in the store, and
	// kept by its job alone.
	tokenSettled = time.Minute
)

// table is the jobs that are known, and submissions whose job id isn't.
type table struct {
	clock   func() time.Time
	started time.Time     // by the clock
	trust   time.Duration // for which an answer is believed
	latest  atomic.Int64  // the last question to Slurm, see question

	mu     sync.RWMutex
	byID   map[slurm.JobID]knownJob
	tokens map[string]submitted
	// ended are the jobs of Slurm's last list that are over and that it still
	// remembers.
	ended   map[slurm.JobID]knownJob
	endedBy int64 // the question for that list
}

// knownJob is a job with the question that it answers. What changes all the time
// is kept beside it.
type knownJob struct {
	job      *Job
	asked    int64
	priority uint32
}

// submitted is what a token stands for.
type submitted struct {
	source  Source
	ownFreq bool
	at      int64
}

func (j *table) init(clock func() time.Time, trust time.Duration) {
	j.clock, j.started, j.trust = clock, clock(), trust
	j.byID, j.tokens = make(map[slurm.JobID]knownJob), make(map[string]submitted)
}

// nextQuestion numbers a question to Slurm: by when it is asked, and later ones are
// greater. An answer never replaces that to a later question, whichever comes
// first.
func (j *table) nextQuestion() int64 {
	sinceStart := j.clock().Sub(j.started)
	for {
		latest := j.latest.Load()
		asked := max(latest+1, int64(sinceStart))
		if j.latest.CompareAndSwap(latest, asked) {
			return asked
		}
	}
}

// isFresh reports whether the answer to a question is still to be believed.
func (j *table) isFresh(asked int64) bool {
	return j.clock().Sub(j.started)-time.Duration(asked) <= j.trust
}

func (j *table) get(id slurm.JobID) *Job {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.byID[id].job
}

// answer returns a job that is known, with the question that it answers.
func (j *table) answer(id slurm.JobID) knownJob {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.byID[id]
}

// endedJob returns a job that ended, as Slurm's last list says.
func (j *table) endedJob(id slurm.JobID) knownJob {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.ended[id]
}

func (j *table) token(token string) (submitted, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.tokens[token]
	return s, ok
}

// put keeps the answer to a question, and returns the latest that is known of
// the job and whether it is the first. Jobs beyond the bound aren't kept, and asked for each time.
func (j *table) put(id slurm.JobID, now knownJob) (job *Job, isNew bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	old, known := j.byID[id]
	switch {
	case known && old.asked > now.asked:
		return old.job, false
	case !known && len(j.byID) >= maxJobs:
		return now.job, false
	}
	j.byID[id] = now
	return now.job, !known
}

// setSource notes what repeats when a job is submitted again, unless its number is another submission's by now.
func (j *table) setSource(id slurm.JobID, job *Job, source Source) *Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.byID[id]
	now := known.job // not the one that is given, where Slurm answered another question meanwhile
	same := now != nil && now.Submitted == job.Submitted && now.UID == job.UID && now.Token == job.Token
	if !same {
		now = job
	}
	scripted := *now
	scripted.Source, scripted.Scripted = source, true
	if same {
		known.job = &scripted
		j.byID[id] = known
	}
	return &scripted
}

// drop forgets a job, unless more is known of it since a question.
func (j *table) drop(id slurm.JobID, asked int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byID[id].asked <= asked {
		delete(j.byID, id)
	}
}

// missing lists the jobs of which no answer came since a question.
func (j *table) missing(asked int64) []slurm.JobID {
	var ids []slurm.JobID
	j.mu.RLock()
	defer j.mu.RUnlock()
	for id, h := range j.byID {
		if h.asked < asked {
			ids = append(ids, id)
		}
	}
	return ids
}

// prune forgets the jobs that a whole list of Slurm's doesn't name, but for those to keep, and
// takes over those that it names as ended. Decisions wait for a thousand jobs at
// most.
func (j *table) prune(asked int64, ended map[slurm.JobID]knownJob, keep map[slurm.JobID]bool) {
	gone := slices.DeleteFunc(j.missing(asked), func(id slurm.JobID) bool { return keep[id] })
	const atOnce = 1000
	for chunk := range slices.Chunk(gone, atOnce) {
		j.mu.Lock()
		for _, id := range chunk {
			if j.byID[id].asked < asked {
				delete(j.byID, id)
			}
		}
		j.mu.Unlock()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if asked >= j.endedBy { // two may ask at once
		j.ended, j.endedBy = ended, asked
	}
}

// settleToken forgets a submission whose job is known: the job has what it
// said. One that came just now may be of further jobs, and isn't in the store
// yet.
func (j *table) settleToken(token string, now time.Time) {
	s, ok := j.token(token)
	if !ok || now.Unix()-s.at < int64(tokenSettled/time.Second) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.tokens, token)
}

// putToken keeps a submission. When there are too many, old ones go: the store
// has them.
func (j *table) putToken(token string, s submitted) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.tokens) >= maxTokens {
		for old, kept := range j.tokens {
			if s.at-kept.at > int64(tokenTrust/time.Second) || len(j.tokens) >= maxTokens {
				delete(j.tokens, old)
			}
		}
	}
	j.tokens[token] = s
}

func (j *table) len() (known, tokens int) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.byID), len(j.tokens)
}

// arrayTask returns the number of an array's task: its own, or that of the tasks that
// haven't been split off yet.
func (j *table) arrayTask(array slurm.JobID, task int) (id slurm.JobID, ok bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for number, held := range j.byID {
		r := held.job.rareParts()
		if r.arrayJob != array {
			continue
		}
		if int(r.arrayTask) == task && r.arrayTasks == "" {
			return number, true
		}
		if tasks, _, err := slurm.ParseArrayTasks(r.arrayTasks); err == nil && slices.Contains(tasks, task) {
			id, ok = number, true
		}
	}
	return id, ok
}
