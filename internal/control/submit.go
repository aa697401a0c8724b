package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// maxMessage is how long a line for the user may be.
const maxMessage = 400

// Submit takes a submission: it answers with a token for the job's
// AdminComment, under which what the submission says is kept until the job
// starts. Jobs without GPUs get none. It never waits for the store.
func (c *Controller) Submit(_ context.Context, s *slurm.Submission) (slurm.SubmitAnswer, error) {
	answer := slurm.SubmitAnswer{Version: slurm.ProtocolVersion}
	c.counters.submissions.Add(1)
	if !s.WantsGPU() {
		return answer, nil
	}
	if s.Script != "" {
		c.counters.scripts.Add(1)
	}
	now := c.options.Clock()
	wishes := slurm.ParseWishes(string(s.Comment), now)
	token, nice := rand.Text(), c.niceAtSubmit(s, &wishes)
	if nice > 0 {
		token = slurm.TokenWithNice(token, nice)
	}
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
	if shared && wishes.HasFixedClocks() {
		said = append(said, "epplan: fixed clocks aren't set on GPUs that others may use, too (shards, MPS)")
	}
	job := forecast.JobOf(s, gpus, c.Jobs.Limit(s.Limit()), from.String())
	expected := c.forecasts.Predict(job)
	said = append(said, c.wishesDoubted(&wishes, s, settings, now)...)
	if advice := c.adviseLimit(s, from, mode); advice != "" {
		said = append(said, advice)
	}
	answer.Message = slurm.Hex(slurm.Printable(strings.Join(said, "; "), maxMessage))
	comment, err := slurm.MergeToken(string(s.Admin), token)
	if _, foreign, _ := slurm.ParseToken(string(s.Admin)); err != nil || !slurm.IsPlain(foreign) {
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
	answer.AdminComment, answer.Nice = slurm.Hex(comment), nice
	return answer, nil
}

// maxArrayList is how long the list of an array's tasks may be, in bytes, for a nice that comes with it.
const maxArrayList = 1000

// niceAtSubmit is the nice with which a job comes behind those that are in order already, until it has its
// own place; 0: none. A job that couldn't start yet gets none, nor one whose user gave it one: ours couldn't
// be told from that. Of an array whose list of tasks Slurm may cut, at 4,096 bytes, it couldn't be taken
// back.
func (c *Controller) niceAtSubmit(s *slurm.Submission, wishes *slurm.Wishes) int64 {
	partition := string(s.Partition)
	if c.options.NiceAtSubmit == nil || strings.Contains(partition, ",") || s.Held ||
		s.BeginTime > 0 || wishes.Off || s.OwnNice || len(s.Array) > maxArrayList {
		return 0
	}
	return c.options.NiceAtSubmit(partition, s.UID, !wishes.Deadline.IsZero())
}

// nearestClocks returns the pair of clocks that is nearest to what a user fixed, and
// how far off it is, in MHz.
func nearestClocks(clocks []dvfsmodel.Setting, w *slurm.Wishes) (near dvfsmodel.Setting, off float64) {
	off = math.Inf(1)
	for _, pair := range clocks {
		apart := math.Abs(float64(pair.Core) - float64(w.CoreMHz))
		if w.MemoryMHz > 0 {
			apart += math.Abs(float64(pair.Mem) - float64(w.MemoryMHz))
		}
		if apart < off {
			near, off = pair, apart
		}
	}
	return near, off
}

// wishesDoubted says which of a user's wishes can be read and can hardly be met: clocks that no GPU has that
// the job may get, and a deadline before the time limit is over.
func (c *Controller) wishesDoubted(
	w *slurm.Wishes, s *slurm.Submission, settings *Settings, now time.Time,
) (said []string) {
	if limit, set := s.Limit().Duration(); set && !w.Deadline.IsZero() && now.Add(limit).After(w.Deadline) {
		said = append(said, fmt.Sprintf("epplan:deadline: it is in %s, and the time limit is %s: "+
			"it is met only if the job takes less", w.Deadline.Sub(now).Round(time.Second), slurm.FormatLimit(limit)))
	}
	if !w.HasFixedClocks() {
		return said
	}
	if above := decide.AboveSite(c.decider, &settings.Settings, w, string(s.Partition)); above != "" {
		return append(said, above)
	}
	type offer struct {
		off  float64
		text string
	}
	var offers []offer
	for _, model := range c.modelsIn(string(s.Partition), settings) {
		var clocks []dvfsmodel.Setting
		if seen := c.decider.GPUs.Clocks(model); seen != nil {
			clocks = seen.Pairs
		} else if p := settings.Profiles.Find(model); p != nil {
			clocks = p.SupportedPairs()
		}
		near, off := nearestClocks(clocks, w)
		if off == 0 || len(clocks) == 0 { // it may have them
			return said
		}
		offers = append(offers, offer{off, fmt.Sprintf("%.0f,%.0f on %s", near.Core, near.Mem, model)})
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.off, b.off) })
	nearest := make([]string, min(len(offers), maxNearest))
	for i := range nearest {
		nearest[i] = offers[i].text
	}
	return append(said, fmt.Sprintf("epplan:fixed=%d: no GPU there has these clocks, so it runs at default "+
		"ones; the nearest: %s", w.CoreMHz, strings.Join(nearest, ", ")))
}

// modelsIn are the GPU models in a partition ("": in any), as their agents name them; where an
// agent hasn't said, all that have clocks, too.
func (c *Controller) modelsIn(partition string, settings *Settings) []string {
	found, told := make(map[string]bool), true
	nodes := c.Jobs.Nodes()
	for i := range nodes {
		n := &nodes[i]
		if jobs.GPUsOfNode(n) == 0 || partition != "" && !slices.Contains(n.Partitions, partition) {
			continue
		}
		model := c.decider.GPUs.Of(n.Name)
		told = told && model != ""
		found[model] = true
	}
	delete(found, "")
	if told && len(found) > 0 {
		return slices.Sorted(maps.Keys(found))
	}
	models := c.decider.GPUs.Models(nil)
	for _, name := range settings.Profiles.Names() {
		if len(settings.Profiles.Find(name).Clocks) > 0 && !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	return models
}

// maxNearest is how many GPU models a word to the user names.
const maxNearest = 4

// adviseLimit is a word to the user of a job whose limit is far longer than its
// last runs have been; "" without one.
func (c *Controller) adviseLimit(s *slurm.Submission, from jobs.Source, mode live.Mode) string {
	settings := c.settings.Load()
	gpus, shared := jobs.GPUsOf(s)
	hint := &settings.Live.LimitHint
	if mode == live.Observe || !hint.For(string(s.Partition)) || shared || gpus == 0 || s.Limit().IsUnlimited() {
		return ""
	}
	upper, runs := c.Foresight.surelyAtDefault(from.Workload(gpus), string(s.Partition), hint.Runs)
	advice, found := slurm.AdviseLimit(s.Limit(), upper, settings.Safety.LimitMargin)
	if !found {
		return ""
	}
	return "epplan: " + hint.Words(slurm.FormatLimit(advice.Limit), slurm.FormatLimit(upper), runs)
}
