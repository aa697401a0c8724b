package colocate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/slurm"
)

// ClusterState is what Slurm shows.
type ClusterState struct {
	At    time.Time
	Nodes []slurm.Node
	Jobs  []slurm.Job
}

// Options are what is known of jobs and nodes.
type Options struct {
	Rules Rules
	// Profile is that of a job's workload on a GPU model, nil without any, and how
	// much of its time at default clocks passes in a second while it runs: less
	// than 1 at lower ones.
	Profile func(j *slurm.Job, gpuModel string) (p *UseProfile, rate float64)
	// Model is the model of a node's GPUs.
	Model func(n *slurm.Node) string
	// GPU is what GPUs of a model draw.
	GPU func(gpuModel string) GPU
	// RecentSamples is what the GPU of a node on which just these jobs run did lately, since
	// the last of them began; none where that isn't known. Nil: it is known nowhere.
	RecentSamples func(node string, jobs []slurm.JobID) []UseSample
	// Speed is how much faster than Slurm's clock the GPUs' time goes by; 0: 1.
	Speed float64
}

// Order is in which order nodes suit a job that asks for a part of a GPU.
type Order struct {
	Job   slurm.JobID `json:"job_id"`
	Note  string      `json:"note,omitempty"` // why there is no order
	Nodes []Node      `json:"nodes"`          // the best first
}

// Node is how a node suits the job. Which of its GPUs the job gets is Slurm's
// choice: what is said holds of the worst that it may be.
type Node struct {
	Name        string        `json:"node"`
	Rank        int           `json:"rank"` // 0: the best; equals have the same
	Fits        bool          `json:"fits"` // everybody is known and keeps the slowdown, and memory holds
	RisesW      float64       `json:"rises_w"`
	Correlation float64       `json:"correlation"`
	Slowdown    float64       `json:"slowdown"`
	Beside      []slurm.JobID `json:"beside"` // jobs that it may come beside
	Why         string        `json:"why,omitempty"`
}

// ShareRequest is what a job asks of shared GPUs.
type ShareRequest struct {
	Name  string // shard or mps
	Count int64
}

// ShareRequestOf returns what a job asks of shared GPUs; false where it asks for none, or for
// whole ones too, or runs on several nodes.
func ShareRequestOf(j *slurm.Job) (ShareRequest, bool) {
	var w ShareRequest
	gres, err := slurm.ParseGres(j.TRESPerNode)
	if err != nil || j.NodeCount > 1 {
		return w, false
	}
	for _, g := range gres {
		switch g.Name {
		case "gpu":
			return w, false
		case "shard", "mps":
			if w.Count > 0 {
				return w, false
			}
			w = ShareRequest{g.Name, g.Count}
		}
	}
	return w, w.Count > 0
}

// RankNodes returns the order of the nodes with shared GPUs of a job's partitions. One
// whose workload isn't known has none.
func RankNodes(c *ClusterState, job *slurm.Job, o *Options) Order {
	out := Order{Job: job.ID, Nodes: []Node{}}
	wish, ok := ShareRequestOf(job)
	if !ok {
		out.Note = "it asks for no part of a GPU on one node"
		return out
	}
	on := jobsByNode(c)
	own := make(map[string]pendingUse)
	known := false
	partitions := strings.Split(job.Partition, ",")
	for i := range c.Nodes {
		n := &c.Nodes[i]
		d := devicesOf(n, wish)
		if d == nil || !n.State.Usable() || !slices.ContainsFunc(n.Partitions,
			func(p string) bool { return slices.Contains(partitions, p) }) {
			continue
		}
		model := o.Model(n)
		mine, seen := own[model]
		if !seen {
			mine = o.futureUseOf(c.At, job, model)
			own[model] = mine
		}
		if mine.futureUse == nil {
			out.Note = cmp.Or(out.Note, mine.why)
			out.Nodes = append(out.Nodes, Node{
				Name: n.Name, Slowdown: 1, Beside: []slurm.JobID{}, Why: mine.why,
			})
			continue
		}
		known = true
		occupy(d, n.Name, on[n.Name])
		if node, ok := o.judgeNode(c.At, n.Name, candidates(d, wish), mine.futureUse, model); ok {
			out.Nodes = append(out.Nodes, node)
		}
	}
	if !known {
		out.Nodes = []Node{}
		return out
	}
	out.Note = ""
	assignRanks(out.Nodes)
	return out
}

// pendingUse is what a pending job would do on GPUs of a model, or why that isn't
// known.
type pendingUse struct {
	*futureUse
	why string
}

func (o *Options) futureUseOf(at time.Time, job *slurm.Job, model string) pendingUse {
	use, why := o.useOf(at, job, model)
	if use == nil {
		return pendingUse{nil, why}
	}
	fresh := use.outlookOver(use.ownSlotS())
	return pendingUse{&fresh, ""}
}

// useOf returns a job's use of a GPU of a model from now on; nil and why where that
// isn't known.
func (o *Options) useOf(at time.Time, j *slurm.Job, model string) (use *JobUse, why string) {
	p, rate := o.Profile(j, model)
	switch {
	case p == nil:
		return nil, "nothing is known of its workload on " + cmp.Or(slurm.Printable(model, 40), "these GPUs")
	case p.Unknown != "":
		return nil, "its workload isn't known: " + p.Unknown
	}
	u := &JobUse{Profile: p, Rate: 1, Kappa: o.Rules.Slowdown}
	speed := cmp.Or(o.Speed, 1)
	elapsed := 0.0
	if j.State.Base != slurm.Pending {
		elapsed, u.Rate = max(0, at.Sub(j.Start).Seconds()), rate
		if u.DoneS = elapsed * rate; u.DoneS >= p.TimeS.Mean {
			return nil, "it has run longer than its workload does"
		}
	}
	if limit, ok := j.TimeLimit.Duration(); ok {
		rest := p.TimeS.High.Or(math.Inf(1)) - u.DoneS
		u.Kappa = min(u.Kappa, max(1, (limit.Seconds()/speed-elapsed)/rest))
	}
	return u, ""
}

func jobsByNode(c *ClusterState) map[string][]*slurm.Job {
	on := make(map[string][]*slurm.Job)
	for i := range c.Jobs {
		j := &c.Jobs[i]
		if j.State.Base == slurm.Pending || j.State.Base.Ended() {
			continue
		}
		for _, name := range j.Nodes {
			on[name] = append(on[name], j)
		}
	}
	return on
}

// device is one of a node's GPUs.
type device struct {
	free int64 // shares
	held bool  // by a job that has all of it
	jobs []*slurm.Job
}

// devicesOf returns a node's GPUs as a wish sees them; nil where the administrator
// shares none so, or no GPU has that many shares.
func devicesOf(n *slurm.Node, wish ShareRequest) []device {
	gpus, shares := int64(0), int64(0)
	for i := range n.Gres {
		switch n.Gres[i].Name {
		case "gpu":
			gpus += n.Gres[i].Count
		case wish.Name:
			shares += n.Gres[i].Count
		}
	}
	const most = 1024
	if gpus < 1 || gpus > most || shares/gpus < wish.Count {
		return nil
	}
	list := make([]device, gpus)
	for i := range list {
		list[i].free = shares / gpus
	}
	return list
}

// occupy puts the jobs of a node on its GPUs. One of which Slurm doesn't say
// where it is counts on each GPU.
func occupy(list []device, node string, jobs []*slurm.Job) {
	for _, j := range jobs {
		placed := false
		for _, at := range j.Gres {
			if at.Node != node {
				continue
			}
			for i := range at.Gres {
				placed = occupyNamed(list, j, &at.Gres[i]) || placed
			}
		}
		if _, shares := ShareRequestOf(j); placed || !shares && j.GPUCount() == 0 {
			continue
		}
		for i := range list {
			list[i].jobs = append(list[i].jobs, j)
		}
	}
}

// occupyNamed puts a job on the GPUs that a gres names; false where it names none.
func occupyNamed(list []device, j *slurm.Job, g *slurm.Gres) bool {
	if g.Name != "gpu" && g.Name != "shard" && g.Name != "mps" {
		return false
	}
	done := false
	for _, at := range g.Index {
		if at < 0 || at >= len(list) {
			continue
		}
		done = true
		if g.Name == "gpu" {
			list[at].held = true
			continue
		}
		list[at].free -= g.Count
		list[at].jobs = append(list[at].jobs, j)
	}
	return done
}

// candidates returns the GPUs that a job may get: those that have room for it, or,
// where none has, those that are shared.
func candidates(list []device, wish ShareRequest) []device {
	held := func(d device) bool { return d.held }
	list = slices.DeleteFunc(list, held)
	room := slices.DeleteFunc(slices.Clone(list), func(d device) bool { return d.free < wish.Count })
	if len(room) > 0 {
		return room
	}
	return list
}

// judgeNode says how a node suits a job, by the worst of the GPUs that it may get;
// false where there are none.
func (o *Options) judgeNode(
	at time.Time, name string, list []device, mine *futureUse, model string,
) (Node, bool) {
	out := Node{
		Name: name, Fits: true, RisesW: math.Inf(-1), Correlation: math.Inf(-1), Slowdown: 1,
		Beside: []slurm.JobID{},
	}
	gpu := o.GPU(model)
	for i := range list {
		v := o.judgeDevice(at, name, &gpu, mine, list[i].jobs, model)
		if out.Fits && !v.fits {
			out.Why = v.why
		}
		out.Fits = out.Fits && v.fits
		out.RisesW, out.Correlation, out.Slowdown = max(out.RisesW, v.risesW),
			max(out.Correlation, v.correlation), max(out.Slowdown, v.slowdown)
		for _, j := range list[i].jobs {
			out.Beside = append(out.Beside, j.ID)
		}
	}
	slices.Sort(out.Beside)
	out.Beside = slices.Compact(out.Beside)
	return out, len(list) > 0
}

// judgeDevice judges a job beside those on one GPU of a node, which may not be known.
func (o *Options) judgeDevice(
	at time.Time, node string, gpu *GPU, mine *futureUse, jobs []*slurm.Job, model string,
) colocation {
	others := make([]futureUse, 0, len(jobs))
	for _, j := range jobs {
		other, why := o.useOf(at, j, model)
		if other == nil {
			return colocation{why: fmt.Sprintf("job %s: %s", j.ID, why), slowdown: 1}
		}
		others = append(others, other.outlookOver(mine.ownSlotS()))
	}
	if why := o.recentDeviation(at, node, jobs, others); why != "" {
		return colocation{why: why, slowdown: 1}
	}
	return gpu.judgeColocation(mine, others)
}

// Differences that don't count: watts, and steps of the correlation.
const (
	powerTolerance       = 2.0
	correlationTolerance = 0.1
	maxRanks             = 8
)

// assignRanks sorts nodes and gives equals the same rank: first where everybody keeps
// the slowdown, by the rise in power and then the correlation. There are at most
// some ranks, since each is a command to Slurm for each node.
func assignRanks(nodes []Node) {
	step := func(x, size float64) float64 { return math.Round(x / size) }
	order := func(a, b *Node) int {
		if a.Fits != b.Fits {
			if a.Fits {
				return -1
			}
			return 1
		}
		if !a.Fits {
			return 0
		}
		return cmp.Or(cmp.Compare(step(a.RisesW, powerTolerance), step(b.RisesW, powerTolerance)),
			cmp.Compare(step(a.Correlation, correlationTolerance), step(b.Correlation, correlationTolerance)))
	}
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(order(&a, &b), strings.Compare(a.Name, b.Name))
	})
	ranks := 0
	for i := range nodes {
		if i > 0 && order(&nodes[i-1], &nodes[i]) != 0 {
			ranks++
		}
		nodes[i].Rank = ranks
	}
	for i := range nodes {
		if ranks >= maxRanks {
			nodes[i].Rank = nodes[i].Rank * (maxRanks - 1) / ranks
		}
	}
}
