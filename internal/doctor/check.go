package doctor

import (
	"context"
	"sync"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Check is one thing that is looked at.
type Check struct {
	Name   string
	On     Role   // where it applies: Head, Node or Both
	What   string // it looks at
	Faults []*Fault
	Look   func(ctx context.Context, e *examination) []Finding
}

// Report is what all checks said, in their order.
type Report struct {
	Role     Role      `json:"role"`
	Findings []Finding `json:"findings"`
}

// Count counts findings of a grade.
func (r *Report) Count(g Grade) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Grade == g {
			n++
		}
	}
	return n
}

// checkTimeout is how long one check may take unless the options say otherwise.
const checkTimeout = 15 * time.Second

// Examine runs checks side by side. Each ends within its bound; one that
// doesn't is [Unknown]. The findings are in the order of the checks.
func Examine(ctx context.Context, site *Site, o Options, checks []Check) *Report {
	if o.Timeout <= 0 {
		o.Timeout = checkTimeout
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := newExamination(ctx, site, o)
	said := make([][]Finding, len(checks))
	var group sync.WaitGroup
	for i := range checks {
		group.Go(func() { said[i] = e.runCheck(ctx, &checks[i]) })
	}
	group.Wait()
	r := &Report{Role: e.role, Findings: []Finding{}}
	for i := range checks {
		for _, f := range said[i] {
			f.Check, f.What, f.Why = checks[i].Name, slurm.Printable(f.What, maxText),
				slurm.Printable(f.Why, maxText)
			r.Findings = append(r.Findings, f)
		}
	}
	return r
}

const maxText = 600

func (e *examination) runCheck(ctx context.Context, c *Check) []Finding {
	switch {
	case c.On == Head && e.role == Node:
		return skipFinding("this machine is a node: it is for the head")
	case c.On == Node && e.role == Head:
		return skipFinding("this machine is the head: it is for nodes")
	}
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	done := make(chan []Finding, 1)
	go func() { done <- c.Look(ctx, e) }()
	select {
	case found := <-done:
		return found
	case <-ctx.Done():
		return unknownFinding("no answer within %v", e.options.Timeout)
	}
}

// lazy finds something out that several checks want to know when it is first asked for,
// within a bound. Nobody waits for it for longer than his own context lasts.
func lazy[T any](
	ctx context.Context, bound time.Duration, find func(context.Context) (T, error),
) func(context.Context) (T, error) {
	var value T
	var err error
	done := make(chan struct{})
	begin := sync.OnceFunc(func() {
		go func() {
			defer close(done)
			ctx, cancel := context.WithTimeout(ctx, bound)
			defer cancel()
			value, err = find(ctx)
		}()
	})
	return func(ctx context.Context) (T, error) {
		begin()
		select {
		case <-done:
			return value, err
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}
