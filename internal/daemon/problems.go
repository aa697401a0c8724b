package daemon

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// Of troubles the latest ones are shown. One that goes on is logged again so
// often.
const (
	maxProblems = 20
	loggedEvery = 10 * time.Minute
)

// loggedProblem is what went wrong, with when that was logged.
type loggedProblem struct {
	epdapi.Problem
	logged time.Time
}

// problemLog keeps what went wrong, for the log and for people who ask.
type problemLog struct {
	log *slog.Logger

	mu     sync.Mutex      // guards what follows
	latest []loggedProblem // each once
	count  int             // how many there were
}

// newProblemLog begins with what went wrong before.
func newProblemLog(log *slog.Logger, before []epdapi.Problem) *problemLog {
	l := &problemLog{log: log, count: len(before)}
	for _, t := range before {
		l.latest = append(l.latest, loggedProblem{t, t.At})
	}
	return l
}

// note notes what went wrong, for the log and for people who ask.
func (l *problemLog) note(err error) {
	if err == nil {
		return
	}
	now, silent := time.Now(), false
	t := loggedProblem{epdapi.Problem{At: now, Message: slurm.Printable(err.Error(), 1000)}, now}
	l.mu.Lock()
	l.count++
	if i := slices.IndexFunc(l.latest,
		func(old loggedProblem) bool { return old.Message == t.Message }); i >= 0 {
		if known := l.latest[i].logged; now.Sub(known) < loggedEvery {
			t.logged, silent = known, true
		}
		l.latest = slices.Delete(l.latest, i, i+1)
	}
	l.latest = append(l.latest, t)
	l.latest = slices.Delete(l.latest, 0, max(0, len(l.latest)-maxProblems))
	l.mu.Unlock()
	if !silent {
		l.log.Warn(t.Message)
	}
}

// latestProblems returns the latest problems, and how many there were.
func (l *problemLog) latestProblems() (latest []epdapi.Problem, count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	latest = make([]epdapi.Problem, len(l.latest))
	for i := range l.latest {
		latest[i] = l.latest[i].Problem
	}
	return latest, l.count
}
