package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/spelling"
)

// Bounds of the queue.
const (
	maxQueued = 20_000
	// maxForeseen is how many jobs without a model are predicted, each of which
	// may take some tenths of a millisecond.
	maxForeseen = 2000
)

// Queue is Slurm's queue of GPU jobs at the last sync, as far as a caller may
// see it, with what is known of the jobs' workloads.
func (s *Service) Queue(ctx context.Context, who Caller) (*epdapi.Queue, error) {
	listed, seen := s.options.Tracker.Status()
	if listed.At.IsZero() || seen.At.IsZero() {
		return nil, errors.New("Slurm's queue isn't known: epd doesn't ask for it, or has no answer yet") //nolint:staticcheck // a name
	}
	set, now := s.options.Settings(), s.options.Clock()
	q := &epdapi.Queue{At: listed.At, Jobs: []epdapi.QueuedJob{}, Nodes: []epdapi.QueueNode{}}
	names := s.options.GPUNames(set.Profiles)
	r := &queueReader{s.options, set, names, make(map[record.WorkloadKey]*learn.Model)}
	nodes := s.options.Tracker.Nodes()
	kinds, foreseen := names.kindsOf(nodes), 0
	usable := usableNodes(nodes)
	for id, known := range s.options.Tracker.All() {
		if !who.canSeeAll() && known.UID != who.UID {
			continue
		}
		j := known.Slurm(id)
		gpus, shared := wantedGPUs(known)
		switch {
		case gpus == 0:
			continue
		case len(q.Jobs) == maxQueued:
			q.LeftOut++
			continue
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		out := queuedJob(names, &j, now)
		out.GPUs, out.Shared, out.Tasks = gpus, shared, known.Tasks()
		if j.State.Base != slurm.Pending {
			out.GPUModel = cmp.Or(kinds.under(&j), out.GPUModel)
			out.NodesAway = usable.countOthers(&j)
		}
		out.Workload = r.workload(ctx, known, out)
		if out.Workload == "" && foreseen < maxForeseen {
			foreseen++
			r.foresee(&j, out)
		}
		q.Jobs = append(q.Jobs, *out)
	}
	q.Nodes, q.Profiles = names.queueNodes(nodes), r.profilesText()
	var err error
	q.Models, err = r.modelsText()
	return q, err
}

// queueReader reads what is known of queued jobs.
type queueReader struct {
	options *Options
	set     *Settings
	names   *GPUNames
	models  map[record.WorkloadKey]*learn.Model // of their workloads
}

// wantedGPUs returns how many GPUs a job has or asks for, and whether only parts of
// them.
func wantedGPUs(k *jobs.Job) (gpus int, shared bool) {
	if k.GPUs > 0 {
		return int(min(k.GPUs, epdapi.MaxGPUs)), false
	}
	if k.SharesGPUs() {
		return 1, true
	}
	return 0, false
}

// queuedJob returns a job as the queue shows it, but for its size and workload.
func queuedJob(names *GPUNames, j *slurm.Job, now time.Time) *epdapi.QueuedJob {
	asked := now
	if !j.Submit.IsZero() {
		asked = j.Submit.In(now.Location())
	}
	wishes := slurm.ParseWishes(j.Comment, asked)
	out := &epdapi.QueuedJob{
		ID: int64(j.ID), Name: slurm.ValidUTF8(j.Name), User: slurm.ValidUTF8(j.User),
		Partition: slurm.ValidUTF8(j.Partition),
		State:     string(j.State.Base), Held: isBlocked(j), Nodes: j.NodeCount,
		GPUModel: names.Wanted(j), DeadlineS: deadlineFrom(now, j.Deadline, wishes.Deadline),
		HandsOff: wishes.Off || wishes.IsFixed() || j.GPUFreq != "", Slowdown: wishes.Slowdown,
	}
	if j.State.Base == slurm.Pending {
		out.Reason = slurm.ValidUTF8(j.Reason)
	}
	if j.ArrayJob != 0 {
		out.ArrayJob, out.ArrayTasks = int64(j.ArrayJob), slurm.ValidUTF8(j.ArrayTasks)
		if out.ArrayTasks == "" && j.ArrayTask >= 0 {
			out.ArrayTasks = strconv.Itoa(j.ArrayTask)
		}
	}
	since := j.Submit
	if j.State.Base != slurm.Pending {
		since = j.Start
	}
	if !since.IsZero() {
		out.AgeS = live.Known(max(0, now.Sub(since).Seconds()))
	}
	out.Limit = j.TimeLimit
	if limit, ok := j.TimeLimit.Duration(); ok && !j.Start.IsZero() && j.State.Base != slurm.Pending {
		out.EndsS = live.Known(max(0, j.Start.Add(limit).Sub(now).Seconds()))
	}
	return out
}

// foresee adds what a job without a model is expected to take, if that is
// known.
func (r *queueReader) foresee(j *slurm.Job, out *epdapi.QueuedJob) {
	k := r.options.Tracker.Get(j.ID)
	if k == nil || k.GPUs == 0 || k.GPUs > epdapi.MaxGPUs || k.Source == (jobs.Source{}) {
		return
	}
	f := r.options.Forecasts.Predict(&forecast.Job{
		UID: k.UID, Name: k.Name, Partition: k.Partition.Value(), Account: k.Account.Value(),
		GPUs: int(k.GPUs), Nodes: int(k.Nodes), Limit: k.Limit, Source: k.Source.String(),
	})
	if f != nil && f.Time.Value > 0 && f.Power.Value > 0 {
		out.RuntimeS, out.PowerW = live.Known(f.Time.Value), live.Known(f.Power.Value)
	}
}

// isBlocked tells by its reason that a pending job can't start whatever is free:
// it is held, or not due yet, or asks for what it can't have.
func isBlocked(j *slurm.Job) bool {
	w := j.WaitKind()
	return w == slurm.WaitHeld || w == slurm.WaitLater || w == slurm.WaitNever
}

// GPUNames tell which GPU models Slurm's GPUs are.
type GPUNames struct {
	Profiles *config.Profiles
	Known    []string                  // GPU models of which anything is known, in order
	OfNode   func(node string) string  // what a node's agent said; "": nothing
	Nodes    func(gpuModel string) int // how many nodes' agents say that they have it
}

// Wanted returns the GPU model that a job names as the type of its gres.
func (g *GPUNames) Wanted(j *slurm.Job) string {
	perNode, err := slurm.ParseGres(j.TRESPerNode)
	if err != nil {
		return ""
	}
	for _, gres := range perNode {
		if name, known := g.modelOfGres(gres.Type); known && gres.Name == "gpu" {
			return name
		}
	}
	return ""
}

// modelOfGres returns the GPU model that a type of gres stands for: of those of its name, or whose names
// hold it, the one that most nodes have, else that of a profile, else the only one. A bare name such as
// a100 is rather a board of that family that the site has. Nodes and jobs of a type have the same one.
func (g *GPUNames) modelOfGres(gres string) (string, bool) {
	if gres == "" {
		return "", false
	}
	p, found := g.under(gres)
	if most := g.mostCommon(found); most != "" {
		return most, true
	}
	switch {
	case p != nil && slices.Contains(found, p.Name):
		return p.Name, true
	case len(found) == 1:
		return found[0], true
	case p != nil:
		return p.Name, true
	}
	return gres, false
}

// under returns the profile of a type of gres, if there is one, and the known GPU models that it may stand
// for.
func (g *GPUNames) under(gres string) (p *config.Profile, found []string) {
	p = g.Profiles.Find(gres)
	wanted := spelling.Fold(gres)
	for _, name := range g.Known {
		if p != nil && name == p.Name || p == nil && strings.Contains(spelling.Fold(name), wanted) ||
			spelling.Fold(config.FamilyOf(name)) == wanted {
			found = append(found, name)
		}
	}
	return p, found
}

// mostCommon returns the one of some GPU models that most nodes have, of several the first; "": none has any.
func (g *GPUNames) mostCommon(names []string) (best string) {
	nodes := 0
	for _, name := range names {
		if n := g.Nodes(name); n > nodes {
			best, nodes = name, n
		}
	}
	return best
}

// knownSpelling returns a name in the spelling in which it is known; "": it isn't.
func (g *GPUNames) knownSpelling(name string) string {
	folded := spelling.Fold(name)
	if i := slices.IndexFunc(g.Known, func(k string) bool { return spelling.Fold(k) == folded }); i >= 0 {
		return g.Known[i]
	}
	return ""
}

// workload returns the key of a job's workload if there is a model of it,
// which is noted.
func (r *queueReader) workload(ctx context.Context, job *jobs.Job, out *epdapi.QueuedJob) string {
	known, err := r.options.Tracker.WithSubmission(ctx, job)
	if err != nil {
		return ""
	}
	out.HandsOff = out.HandsOff || known.OwnFreq || out.Shared
	workload, found := known.Source.Workload(out.GPUs), ""
	for _, name := range r.names.Known {
		key := r.options.keyIn(known.Partition.Value(), workload, name)
		if m := r.options.Learner.Model(key).Model; m != nil {
			r.models[key], found = m, key.Workload
		}
	}
	return found
}

// queueNodes returns the kinds of nodes that Slurm may start jobs on.
func (g *GPUNames) queueNodes(nodes []slurm.Node) []epdapi.QueueNode {
	kinds := []epdapi.QueueNode{}
	for i := range nodes {
		kind := g.NodeKind(&nodes[i])
		if kind.GPUs == 0 || !nodes[i].State.Usable() {
			continue
		}
		kind.Partitions = nonNil(slices.Sorted(slices.Values(nodes[i].Partitions)))
		at := slices.IndexFunc(kinds, func(k epdapi.QueueNode) bool {
			return k.GPUModel == kind.GPUModel && k.GPUs == kind.GPUs &&
				slices.Equal(k.Partitions, kind.Partitions)
		})
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, kind)
		}
		kinds[at].Count++
	}
	return kinds
}

// NodeKind returns what GPUs a node has; without any it has 0. Their type stands for a GPU model of a
// profile, or for one that is known; those without a type are what the node's agent says, or else of the
// only GPU model that is known, if it is the only one.
func (g *GPUNames) NodeKind(n *slurm.Node) epdapi.QueueNode {
	kind := epdapi.QueueNode{}
	for _, gres := range n.Gres {
		if gres.Name != "gpu" || gres.Count < 1 || kind.GPUs > 0 {
			continue
		}
		kind.GPUs = int(min(gres.Count, math.MaxInt16))
		if gres.Type != "" {
			kind.GPUModel, _ = g.modelOfGres(gres.Type)
			continue
		}
		if kind.GPUModel = g.knownSpelling(g.OfNode(n.Name)); kind.GPUModel == "" && len(g.Known) == 1 {
			kind.GPUModel = g.Known[0]
		}
	}
	return kind
}

// nodeKinds are the GPU models of nodes by name.
type nodeKinds map[string]string

func (g *GPUNames) kindsOf(nodes []slurm.Node) nodeKinds {
	kinds := make(nodeKinds, len(nodes))
	for i := range nodes {
		if kind := g.NodeKind(&nodes[i]); kind.GPUs > 0 {
			kinds[nodes[i].Name] = kind.GPUModel
		}
	}
	return kinds
}

// under returns the GPU model of the first node that a job runs on; "" if it isn't
// known.
func (k nodeKinds) under(j *slurm.Job) string {
	names, err := slurm.ExpandHostlist(j.NodeList)
	if err != nil || len(names) == 0 {
		return ""
	}
	return k[names[0]]
}

// nodeNames are names of nodes.
type nodeNames map[string]bool

// usableNodes returns those on which Slurm may start jobs.
func usableNodes(nodes []slurm.Node) nodeNames {
	usable := make(nodeNames, len(nodes))
	for i := range nodes {
		usable[nodes[i].Name] = nodes[i].State.Usable()
	}
	return usable
}

// countOthers is on how many other nodes a job runs.
func (n nodeNames) countOthers(j *slurm.Job) (count int) {
	names, err := slurm.ExpandHostlist(j.NodeList)
	if err != nil {
		return 0
	}
	for _, name := range names {
		if !n[name] {
			count++
		}
	}
	return count
}

// modelsText returns the models of queued jobs as a models file; empty without any. One that
// can't be said so is left out.
func (r *queueReader) modelsText() (string, error) {
	var all []config.Model
	keys := slices.SortedFunc(maps.Keys(r.models), record.WorkloadKey.Compare)
	for _, key := range keys {
		m := config.NewModel(key.Workload, key.GPUModel, r.models[key].Fitted)
		if _, err := config.NewModels(m); err != nil {
			r.options.Log.Warn("a model can't be listed", "error", err)
			continue
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return "", nil
	}
	set, err := config.NewModels(all...)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = config.WriteModels(&text, set)
	return text.String(), err
}

// assumedIdleW is what an idle GPU of a model without a profile is taken to
// draw, in plans of the queue.
const assumedIdleW = 50

// profilesText is GPU models as a profiles file, empty without any: those that the site limits, and those
// whose clocks agents named and no profile does, other than by an estimate. One that can't be said so is left
// out.
func (r *queueReader) profilesText() string {
	var b strings.Builder
	for _, name := range r.names.Known {
		p := r.profile(name)
		if p == nil {
			continue
		}
		text := p.Text()
		if _, err := config.ReadProfiles(strings.NewReader(text), ""); err != nil {
			r.options.Log.Warn("the clocks of a GPU model can't be listed", "gpu_model", name, "error", err)
			continue
		}
		b.WriteString(text)
	}
	return b.String()
}

// profile returns what others don't know of a GPU model; nil: they know its profile, or nobody named its
// clocks.
func (r *queueReader) profile(name string) *config.Profile {
	p, err := r.set.Profiles.Lookup(name)
	if err == nil && (len(p.Clocks) > 0 && !slices.Contains(p.Estimate, "clocks") || p.Range != "") {
		if _, limited := r.set.Live.SiteClocks.Models[p.Name]; limited {
			return p // without the clocks above
		}
		return nil
	}
	seen, known := r.options.Clocks(name)
	if !known {
		return nil
	}
	out := &config.Profile{
		Name: name, IdleW: assumedIdleW, HostW: r.set.HostW(name), Default: seen.Base,
		Source: "the device's own clocks; idle power assumed",
	}
	pairs := seen.Pairs
	if err == nil {
		pairs, out.IdleW, out.Source = plannedPairs(p, seen), p.IdleW, "the device's own clocks"
	}
	for i, pair := range pairs {
		if i == 0 || pairs[i-1].Mem != pair.Mem {
			out.Clocks = append(out.Clocks, config.ClockGroup{Mem: []dvfsmodel.MHz{pair.Mem}})
		}
		last := &out.Clocks[len(out.Clocks)-1]
		last.Core = append(last.Core, pair.Core)
	}
	return out
}

// plannedPairs returns a device's clocks at the memory clocks that plans choose by the profile;
// all of them where its default ones aren't among these.
func plannedPairs(p *config.Profile, seen Clocks) []dvfsmodel.Setting {
	planned := make(map[dvfsmodel.MHz]bool)
	for _, pair := range p.Pairs() {
		planned[pair.Mem] = true
	}
	if !planned[seen.Base.Mem] {
		return seen.Pairs
	}
	return slices.DeleteFunc(slices.Clone(seen.Pairs), func(s dvfsmodel.Setting) bool { return !planned[s.Mem] })
}

// deadlineFrom returns the seconds that remain to a time; unknown without one.
func deadlineFrom(now time.Time, all ...time.Time) live.Number {
	least := math.Inf(1)
	for _, at := range all {
		if !at.IsZero() {
			least = min(least, at.Sub(now).Seconds())
		}
	}
	return live.Known(least)
}
