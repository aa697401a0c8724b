package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Releases of Slurm that epplan is made for: from the first to the last one
// that its tests run against.
var oldestSlurm, newestSlurm = slurm.Version{Major: 22, Minor: 5}, slurm.Version{Major: 26, Minor: 5}

var slurmMissing = &Fault{
	"slurm-missing", Bad, "scontrol isn't on this machine", "epd runs Slurm's commands",
	Fix{Run: "apt-get install slurm-client"},
}

var slurmTooOld = &Fault{
	"slurm-old", Bad, "Slurm is {version}, older than {least}",
	"job_submit.lua and squeue's output differ there, untested",
	Fix{Run: "sbatch --version    # update Slurm to {least} or later"},
}

var slurmNew = &Fault{
	"slurm-new", Warn, "Slurm is {version}, newer than {most}", "epplan doesn't know what changed since",
	Fix{Run: "epplan status    # after a job, decisions and outcomes must have grown"},
}

func checkVersion(ctx context.Context, e *examination) []Finding {
	if e.site.Slurm == nil {
		return slurmMissing.finding()
	}
	v, err := e.site.client().Version(ctx)
	name := func(v slurm.Version) string { return fmt.Sprintf("%d.%02d", v.Major, v.Minor) }
	switch {
	case err != nil:
		return unknownFinding("scontrol --version: %v", err)
	case !v.AtLeast(oldestSlurm.Major, oldestSlurm.Minor):
		return slurmTooOld.finding("version", v.String(), "least", name(oldestSlurm))
	case v.AtLeast(newestSlurm.Major, newestSlurm.Minor+1):
		return slurmNew.finding("version", v.String(), "most", name(newestSlurm))
	}
	return okFinding("Slurm %s", v)
}

var ctldDown = &Fault{
	"slurmctld-down", Bad, "slurmctld doesn't run: {error}",
	"no job is submitted or started",
	Fix{Run: "systemctl restart slurmctld"},
}

var ctldHung = &Fault{
	"slurmctld-hung", Bad, "slurmctld doesn't answer within {bound}: it hangs or is overloaded",
	"submissions wait, and epd doesn't learn of new jobs",
	Fix{Run: "systemctl restart slurmctld"},
}

func checkCtld(ctx context.Context, e *examination) []Finding {
	if e.site.Slurm == nil {
		return skipFinding("%v", errNoSlurm)
	}
	if _, err := e.munge(ctx); err != nil {
		return unknownFinding("munge doesn't work, and without it nobody can ask")
	}
	_, err := e.ping(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ctldHung.finding("bound", slurmTimeout.String())
	case err != nil:
		return ctldDown.finding("error", err.Error())
	}
	return okFinding("slurmctld answers")
}

var nodeSilent = &Fault{
	"node-silent", Bad, "slurmctld has no answer from {nodes}", "no job starts there",
	Fix{Run: "ssh {first} systemctl restart slurmd"},
}

var nodeDrained = &Fault{
	"node-drained", Bad, "{nodes} drained: {reason}", "no job starts there until it is resumed",
	Fix{
		Run: "scontrol update nodename={nodes} state=resume    # after fixing the other findings",
	},
}

// checkNodes looks at this node, on the head at all of them.
func checkNodes(ctx context.Context, e *examination) []Finding {
	nodes, err := e.checkedNodes(ctx)
	if err != nil {
		return unknownFinding("%v", err)
	}
	var found []Finding
	var silent []string
	for i := range nodes {
		n := &nodes[i]
		switch why := strings.ToLower(n.Reason); {
		case n.State.Is("DRAIN") && (strings.Contains(why, "prolog") || strings.Contains(why, "epilog")):
			found = append(found, nodeDrained.finding("nodes", hooks.ShellQuote(n.Name), "reason", n.Reason)...)
		case n.State.Base == "DOWN" && !n.State.IsPoweredDown():
			silent = append(silent, n.Name)
		}
	}
	if len(silent) > 0 {
		found = append(found, nodeSilent.finding("nodes", shortList(silent), "first", silent[0])...)
	}
	return orOK(found, "%d of slurmctld's nodes looked at: none is down, or drained by a hook", len(nodes))
}

// checkedNodes are this node, on the head all of them.
func (e *examination) checkedNodes(ctx context.Context) ([]slurm.Node, error) {
	if e.site.Slurm == nil {
		return nil, errNoSlurm
	}
	if _, err := e.munge(ctx); err != nil {
		return nil, errors.New("munge doesn't work, and without it slurmctld can't be asked")
	}
	all, err := e.slurmNodes(ctx)
	if err != nil || e.role != Node {
		return all, err
	}
	s, err := e.agentStatus(ctx)
	if err != nil {
		return nil, fmt.Errorf("how Slurm calls this node is known to epd: %w", err)
	}
	own := slices.DeleteFunc(slices.Clone(all), func(n slurm.Node) bool { return n.Name != s.Node })
	return own, nil
}

func shortList(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ",") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ",")
}

var flagsMissing = &Fault{
	"prolog-flags", Warn, "PrologFlags is {value}, without Alloc",
	"the Prolog runs only at a job's first step, so clocks come late",
	Fix{File: "{conf}", Line: "PrologFlags={wanted}", Run: "scontrol reconfigure"},
}

// flagsWithAlloc are the flags that mean Alloc, too; slurmctld says both.
var flagsWithAlloc = []string{"alloc", "contain", "nohold", "runinjob", "serial", "x11"}

func checkFlags(_ context.Context, _ *examination, s *settings) []Finding {
	value, wanted := s.get("PrologFlags"), "Alloc"
	if slices.ContainsFunc(strings.Split(strings.ToLower(value), ","),
		func(f string) bool { return slices.Contains(flagsWithAlloc, strings.TrimSpace(f)) }) {
		return okFinding("PrologFlags=%s", value)
	}
	if value != "" {
		wanted = value + ",Alloc"
	}
	return flagsMissing.finding("value", cmp.Or(value, "not set"), "wanted", wanted,
		"conf", s.path)
}

// minHookTime is how many seconds a Prolog or Epilog of ours may take, and the
// site's own beside it.
const minHookTime = 5

var timeoutShort = &Fault{
	"hook-timeout", Bad, "{key} is {value} s",
	"epplan's hooks may take 2 s; one that is killed drains the node",
	Fix{File: "{conf}", Line: "{key}=30", Run: "scontrol reconfigure"},
}

// checkTimeouts looks at what counts for each hook: from 25.05 on its own timeout, where it is set, in place
// of the one of both.
func checkTimeouts(_ context.Context, _ *examination, s *settings) []Finding {
	var found []Finding
	var short []string
	for _, own := range []string{"PrologTimeout", "EpilogTimeout"} {
		key := own
		if s.get(own) == "" {
			key = "PrologEpilogTimeout"
		}
		number, _, _ := strings.Cut(s.get(key), " ")
		seconds, err := strconv.ParseUint(number, 10, 32)
		if err == nil && seconds < minHookTime && !slices.Contains(short, key) {
			short = append(short, key)
			found = append(found, timeoutShort.finding("key", key, "value", number, "conf", s.path)...)
		}
	}
	return orOK(found, "Prologs and Epilogs have time enough")
}

var priorityBasic = &Fault{
	"priority-basic", Warn, "{wants}, and PriorityType is priority/basic",
	"each point of Nice passes one job there, and neither age nor fair share brings it forward again",
	Fix{
		File: "{conf}", Line: "PriorityType=priority/multifactor",
		Run: "systemctl restart slurmctld    # with PriorityWeightPartition=100000 or other weights",
	},
}

var priorityFlat = &Fault{
	"priority-flat", Bad, "{wants}, and all of priority/multifactor's weights are 0",
	"all jobs have the lowest priority, which Nice can't lower",
	Fix{File: "{conf}", Line: "PriorityWeightPartition=100000", Run: "scontrol reconfigure"},
}

var priorityLow = &Fault{
	"priority-low", Bad, "{wants}, and {seen}",
	"Nice can't lower a priority below 1, so jobs stay in Slurm's own order",
	// Of partitions that have the same PriorityJobFactor every job gets as much.
	Fix{
		File: "{conf}", Line: "PriorityWeightPartition=100000",
		Run: "scontrol reconfigure    # pending jobs follow within PriorityCalcPeriod, 5 min",
	},
}

func checkPriority(ctx context.Context, e *examination) []Finding {
	c, err := e.epdConfig(ctx)
	if err != nil {
		return unknownFinding("whether epd orders the queue isn't known: %v", err)
	}
	wants := orderingText(c)
	if wants == "" {
		return skipFinding("the order of the queue is left to Slurm")
	}
	s, err := e.settings(ctx)
	switch {
	case err != nil:
		return unknownFinding("%v", err)
	case s.get("PriorityType") == "" || strings.EqualFold(s.get("PriorityType"), "priority/basic"):
		return priorityBasic.finding("wants", wants, "conf", s.path)
	}
	weights := s.priorityWeights()
	if len(weights) == 0 && s.get("PrioritySiteFactorPlugin") == "" {
		return priorityFlat.finding("wants", wants, "conf", s.path)
	}
	seen := e.lowPriorityText(ctx)
	if seen == "" && !s.raisesPriority(weights) {
		seen = "new jobs have priorities near 1: only " + strings.Join(weights, ", ") +
			" counts, which gives them nothing yet"
	}
	if seen != "" {
		return priorityLow.finding("wants", wants, "seen", seen, "conf", s.path)
	}
	return okFinding("%s, by %s", wants, s.get("PriorityType"))
}

// priorityWeights returns the names of priority/multifactor's weights that count, in order.
func (s *settings) priorityWeights() []string {
	var names []string
	for key, value := range s.values {
		if name, ok := strings.CutPrefix(key, "priorityweight"); ok && value != "" && value != "0" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// raisesPriority reports whether weights may give a new job a priority well above 1: an age
// begins at nothing, and without accounting so does what belongs to users.
func (s *settings) raisesPriority(weights []string) bool {
	counts := []string{"partition", "jobsize", "tres"}
	if !s.hasNoAccounting() {
		counts = append(counts, "qos", "fairshare", "assoc")
	}
	return s.get("PrioritySiteFactorPlugin") != "" || slices.ContainsFunc(weights, func(w string) bool {
		return slices.Contains(counts, w)
	})
}

// lowPriorityText returns what epd says of partitions whose priorities leave no room; empty:
// nothing, or nobody is there to ask.
func (e *examination) lowPriorityText(ctx context.Context) string {
	if _, _, err := e.controllerStatus(ctx); err != nil {
		return ""
	}
	now, err := e.site.EPD(e.options.adminSocket()).Levers(ctx)
	if err != nil {
		return ""
	}
	return strings.Join(now.NotesOnLowPriorities(), "; ")
}

// orderingText says what a configuration changes in the order of jobs; "": nothing.
func orderingText(c *config.Config) string {
	if c == nil || !enforcesAnywhere(&c.Live) {
		return ""
	}
	extents := []config.Reorder{c.Live.Reorder}
	for _, extent := range c.Live.Reorders {
		extents = append(extents, extent)
	}
	plan, wanted := c.Live.Planning()
	switch {
	case !slices.ContainsFunc(extents, func(r config.Reorder) bool { return r != config.ReorderOff }):
		return ""
	case !wanted:
		return "jobs with deadlines go first"
	}
	return "jobs are put in the order of " + plan.Policy
}

func enforcesAnywhere(l *config.Live) bool {
	for _, mode := range l.Modes {
		if mode == live.Enforce {
			return true
		}
	}
	return l.Mode == live.Enforce
}

var privateJobs = &Fault{
	"private-data", Bad,
	"PrivateData={value}, and epd's user {uid} is neither root nor Slurm's user",
	"Slurm hides other users' jobs from it: they run at default clocks",
	Fix{Run: "systemctl edit epd-controller    # [Service] User={user}"},
}

func checkPrivate(ctx context.Context, e *examination, s *settings) []Finding {
	value := s.get("PrivateData")
	hides := strings.Contains(value, "jobs") || strings.Contains(value, "nodes")
	if !hides {
		return okFinding("Slurm shows jobs and nodes to everybody")
	}
	status, err := e.headStatus(ctx)
	if err != nil || status.Health == nil {
		return unknownFinding("PrivateData=%s, and who epd runs as isn't known: it doesn't answer", value)
	}
	name, rest, _ := strings.Cut(s.get("SlurmUser"), "(")
	uid := strconv.FormatUint(uint64(status.Health.UID), 10)
	if uid == "0" || uid == strings.TrimSuffix(rest, ")") {
		return okFinding("PrivateData=%s, and epd runs as user %s, who sees all", value, uid)
	}
	return privateJobs.finding("value", value, "uid", uid, "user", cmp.Or(name, "slurm"))
}

var sleepProgram = &Fault{
	"power-saving", Bad, "sleep_after_s is set, and Slurm has no {key}",
	"Slurm can't switch nodes off or on",
	Fix{
		File: "{conf}", Line: "{key}={program}",
		Run: "scontrol reconfigure    # the program: one line that runs epplan {hook} \"$1\" --run " +
			"/usr/local/sbin/node-power",
	},
}

var sleepMode = &Fault{
	"power-mode", Warn, "sleep_after_s is set, and Slurm's SuspendTime is INFINITE",
	"before 26.05 Slurm refuses to switch any node off, unless a partition has a SuspendTime",
	Fix{File: "{conf}", Line: "SuspendTime=3600", Run: "scontrol reconfigure"},
}

var sleepTimeout = &Fault{
	"power-timeout", Warn, "ResumeTimeout is {value}, shorter than a server's boot",
	"a node that isn't back by then is set DOWN",
	Fix{File: "{conf}", Line: "ResumeTimeout=600", Run: "scontrol reconfigure"},
}

func checkPower(ctx context.Context, e *examination) []Finding {
	c, err := e.epdConfig(ctx)
	switch {
	case err != nil:
		return unknownFinding("whether nodes are to sleep isn't known: %v", err)
	case c == nil || c.Live.SleepAfter <= 0:
		return skipFinding("no node is to sleep: sleep_after_s isn't set")
	}
	s, err := e.settings(ctx)
	if err != nil {
		return unknownFinding("%v", err)
	}
	var found []Finding
	for _, p := range [][2]string{{"SuspendProgram", "suspend"}, {"ResumeProgram", "resume"}} {
		if s.get(p[0]) == "" {
			found = append(found, sleepProgram.finding("key", p[0], "hook", p[1], "conf", s.path, "program",
				"/usr/local/sbin/epplan-"+p[1])...)
		}
	}
	if s.byFile == "" && len(found) == 0 && strings.EqualFold(s.get("SuspendTime"), "infinite") &&
		!e.site.mayBeFrom(ctx, 26, 5) {
		found = append(found, sleepMode.finding("conf", s.path)...)
	}
	number, _, _ := strings.Cut(s.get("ResumeTimeout"), " ")
	const boots = 60
	if seconds, err := strconv.Atoi(number); err == nil && seconds < boots {
		found = append(found, sleepTimeout.finding("value", s.get("ResumeTimeout"), "conf", s.path)...)
	}
	return orOK(found, "Slurm can switch nodes off and on")
}

var gresOff = &Fault{
	"gres-types", Bad, "GresTypes is {value}, without gpu",
	"Slurm gives no job a GPU",
	Fix{File: "{conf}", Line: "GresTypes={wanted}", Run: "scontrol reconfigure"},
}

var gresCount = &Fault{
	"gres-count", Bad, "Slurm has {slurm} GPUs on {node}, epd sees {epd}",
	"if it isn't certain which GPU a job has, none is touched",
	Fix{Run: "nvidia-smi -L; cat {gres}    # make both lists the same, or give epd --gpu-order"},
}

func checkGres(ctx context.Context, e *examination, s *settings) []Finding {
	types := s.get("GresTypes")
	if !slices.ContainsFunc(strings.Split(types, ","),
		func(t string) bool { return strings.EqualFold(t, "gpu") }) {
		return gresOff.finding("value", cmp.Or(types, "not set"), "wanted",
			strings.TrimPrefix(types+",gpu", ","), "conf", s.path)
	}
	if e.role == Head {
		return okFinding("GresTypes=%s", types)
	}
	status, err := e.agentStatus(ctx)
	if err != nil {
		return unknownFinding("GresTypes=%s; which GPUs are here isn't known: %v", types, err)
	}
	nodes, err := e.checkedNodes(ctx)
	if err != nil {
		return unknownFinding("GresTypes=%s; which GPUs Slurm has here isn't known: %v", types, err)
	}
	for i := range nodes {
		if nodes[i].Name != status.Node {
			continue
		}
		count := nodes[i].GPUCount()
		if count != len(status.GPUs) {
			return gresCount.finding("slurm", strconv.Itoa(count), "node", status.Node, "epd",
				strconv.Itoa(len(status.GPUs)),
				"gres", strings.TrimSuffix(s.path, "slurm.conf")+"gres.conf")
		}
		return okFinding("%d GPUs on %s, for Slurm as for epd", count, status.Node)
	}
	return unknownFinding("slurmctld knows no node %s, as epd calls this one", status.Node)
}

var accountingOff = &Fault{
	"accounting", Warn, "Slurm keeps no accounting",
	"jobs that ended while epd was down are lost, and predictions have no history",
	Fix{
		File: "{conf}", Line: "AccountingStorageType=accounting_storage/slurmdbd",
		Run: "scontrol reconfigure    # with slurmdbd running",
	},
}

func checkAccounting(_ context.Context, _ *examination, s *settings) []Finding {
	if s.hasNoAccounting() {
		return accountingOff.finding("conf", s.path)
	}
	return okFinding("%s", s.get("AccountingStorageType"))
}

func (s *settings) hasNoAccounting() bool {
	kind := s.get("AccountingStorageType")
	return kind == "" || strings.HasSuffix(kind, "/none")
}
