package control

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// maxMessage is how long a line for the user may be.
const maxMessage = 400

// Submit takes a submission: it answers with a token for the job's
// AdminComment, under which what the submission says is kept until the job
// starts. Jobs without GPUs get none. It never waits for the store.
func (c *Controller) Submit(_ context.Context, s *hooks.Submission) (hooks.SubmitAnswer, error) {
	answer := hooks.SubmitAnswer{Version: hooks.ProtocolVersion}
	c.counters.submissions.Add(1)
	if !s.WantsGPU() {
		return answer, nil
	}
	if s.Script != "" {
		c.counters.scripts.Add(1)
	}
	now := c.options.Clock()
	wishes := slurm.ParseWishes(string(s.Comment), now)
	from := jobs.SourceOf(s.UID, jobs.ScriptHash(s.Script), string(s.Name))
	own := s.TRESFreq != ""
	reason := "submitted"
	if own {
		reason = jobs.ReasonOwnFreq
	}
	settings := c.settings.Load()
	mode := live.Mode("") // where the user names no partition: Slurm chooses later
	if s.Partition != "" {
		mode = settings.Live.ModeOf(string(s.Partition))
	}
	said := wishes.Warnings
	gpus, shared := jobs.GPUsOf(s)
	if shared && wishes.IsFixed() {
		said = append(said, "epplan: fixed clocks aren't set on GPUs that others may use, too (shards, MPS)")
	}
	job := forecast.JobOf(s, gpus, c.Jobs.Limit(s.Limit()), from.String())
	expected := c.forecasts.Predict(job)
	doubts := unmeetableRequests{c.decider, c.Jobs, settings, string(s.Partition)}
	said = append(said, doubts.of(&wishes, s.Limit(), now)...)
	if advice := c.adviseLimit(s, from, mode); advice != "" {
		said = append(said, advice)
	}
	token, nice := rand.Text(), c.niceAtSubmit(s, &wishes)
	begin, word := c.Foresight.hourOf(&waiter{s, gpus, shared, &wishes, from, expected, now})
	if word != "" {
		said = append(said, word)
	}
	switch {
	case !begin.IsZero(): // who begins later passes nobody
		token = slurm.TokenWithBegin(token, begin)
	case nice > 0:
		token = slurm.TokenWithNice(token, nice)
	}
	answer.Message = hooks.Hex(slurm.Printable(strings.Join(said, "; "), maxMessage))
	comment, err := slurm.MergeToken(string(s.Admin), token)
	if _, foreign, _ := slurm.ParseToken(string(s.Admin)); err != nil || !slurm.IsPlainComment(foreign) {
		c.counters.foreignComments.Add(1) // they aren't to be touched, and the job goes by its name
		return answer, nil                //nolint:nilerr // it is counted
	}
	c.Jobs.Submitted(token, from, own, now)
	noted := &record.Decision{
		Cluster: c.options.Cluster, Token: token, Workload: from.String(), Reason: reason,
		Mode: string(mode), ConfigVersion: settings.Version,
		Arm: live.ArmExcluded, Created: now,
	}
	forecast.Note(expected, noted)
	c.decider.WriteSubmission(noted)
	c.forecasts.KeepScript(job, !wishes.NoCode)
	answer.AdminComment = hooks.Hex(comment)
	if begin.IsZero() {
		answer.Nice = nice
	} else {
		answer.Begin = begin.Unix()
	}
	return answer, nil
}

// maxArrayList is how long the list of an array's tasks may be, in bytes, for a nice that comes with it.
const maxArrayList = 1000

// niceAtSubmit returns the nice with which a job comes behind those that are in order already, until it has
// its own place; 0: none. A job that couldn't start yet gets none, nor one whose user gave it one: ours
// couldn't be told from that. Of an array whose list of tasks Slurm may cut, at 4,096 bytes, it couldn't be
// taken back.
func (c *Controller) niceAtSubmit(s *hooks.Submission, wishes *slurm.Wishes) int64 {
	partition := string(s.Partition)
	if c.options.NiceAtSubmit == nil || strings.Contains(partition, ",") || s.Held ||
		s.BeginTime > 0 || wishes.Off || s.OwnNice || len(s.Array) > maxArrayList {
		return 0
	}
	return c.options.NiceAtSubmit(partition, s.UID, !wishes.Deadline.IsZero())
}

// adviseLimit returns a word to the user of a job whose limit is far longer than its
// last runs have been; "" without one.
func (c *Controller) adviseLimit(s *hooks.Submission, from jobs.Source, mode live.Mode) string {
	settings := c.settings.Load()
	gpus, shared := jobs.GPUsOf(s)
	hint := &settings.Live.LimitHint
	if mode == live.Observe || !hint.AppliesTo(string(s.Partition)) || shared || gpus == 0 ||
		s.Limit().IsUnlimited() {
		return ""
	}
	upper, runs := c.Foresight.surelyAtDefault(from.Workload(gpus), string(s.Partition), hint.Runs)
	advice, found := slurm.AdviseLimit(s.Limit(), upper, settings.Safety.LimitMargin)
	if !found {
		return ""
	}
	return "epplan: " + hint.Words(slurm.FormatLimit(advice.Limit), slurm.FormatLimit(upper), runs)
}
