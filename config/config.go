package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/spelling"
)

// Config is a configuration: what to optimise, by which policy, how safely, on
// which cluster. [Default] has the defaults; a file changes what it names.
type Config struct {
	Policy  Policy
	Safety  Safety
	Live    Live
	Predict Predict
	Records Records
	Factors Factors
	Budget  Budget
	Web     Web

	objective objective
	start     string
	cluster   planner.Cluster
	runtimeOn string // cluster.runtime_gpu_model
	speeds    string // cluster.gpu_speeds
	sharedGPU sharedGPU
	shared    []sharedClass             // by node class
	gpus      []Profile                 // of the file itself
	profiles  *Profiles                 // all that nodes may name
	origin    map[string]queue.Position // of the keys that the file set
	warnings  []error
}

// Best is the policy that stands for the best one there is.
const Best = "best"

// Policy says how to plan. Offline and Online are policy strings, or [Best].
type Policy struct {
	Offline, Online string
	Theta           float64 // θ of policies that readjust, 0 < θ ≤ 1
	Rho             float64 // ρ: slots (seconds without slots) until an idle node goes off
}

// Params returns the numbers for [policy.Parse].
func (p Policy) Params() policy.Params { return policy.Params{Theta: p.Theta, Rho: p.Rho} }

// Safety keeps plans away from limits and deadlines that predictions could
// miss.
type Safety struct {
	LimitMargin    float64 // predicted run time × (1 + LimitMargin) must meet the limit
	DeadlineMargin float64 // seconds by which a job must end before its deadline
	// MaxTurnaround is how many times as long as first come, first served at default clocks a
	// job without a deadline may take from its submission to its end. How long it may run is
	// another matter: [Live.MaxSlowdown].
	MaxTurnaround float64
	// Pace is the mean turnaround that a plan of jobs that arrive over time may take, as a multiple of that
	// under EASY at default clocks. A job with a deadline has none before it.
	Pace float64
}

// MaxFactor is the largest MaxTurnaround, and the largest MaxSlowdown, that is taken.
const MaxFactor = 1e6

// Words of the start rule.
const (
	startAuto       = "auto"
	startContinuous = "continuous"
	startSlot       = "slot"
)

// Default returns the configuration without a file.
func Default() *Config {
	c := configWithoutNodes(nil)
	c.cluster.Classes, c.shared = []planner.NodeClass{defaultClass(c.profiles)}, make([]sharedClass, 1)
	return c
}

func configWithoutNodes(profiles *Profiles) *Config {
	if profiles == nil {
		profiles = BuiltinProfiles()
	}
	return &Config{
		Policy:    Policy{Offline: Best, Online: Best, Theta: 1, Rho: 2},
		Safety:    Safety{LimitMargin: 0.1, MaxTurnaround: 1.5, Pace: 1},
		Live:      defaultLive(),
		Predict:   defaultPredict(),
		Records:   Records{KeepDays: 400, DetailDays: 90},
		Factors:   Factors{PUE: 1},
		Budget:    defaultBudget(),
		Web:       defaultWeb(),
		objective: objective{name: nameEnergy, energyWeight: 1, tolerance: policy.DefaultTolerance},
		start:     startAuto,
		sharedGPU: defaultSharedGPU(),
		cluster:   planner.Cluster{Name: "cluster", OfflineTurnOn: true},
		profiles:  profiles,
	}
}

// Load reads a configuration. What the file doesn't say has the value of
// [Default]; a file that lists nodes replaces all of the default ones. Nodes
// may name the given GPU models (nil: [BuiltinProfiles]) and those of the
// file's own [[gpu]] tables. The error is a [FileError] unless the file can't
// be read at all.
func Load(r io.Reader, name string, profiles *Profiles) (*Config, error) {
	d, err := parse(r, name)
	if err != nil {
		return nil, err
	}
	c := configWithoutNodes(profiles)
	d.readFields("", "", d.root, c.fields())
	if len(c.cluster.Classes) == 0 {
		c.cluster.Classes, c.shared = []planner.NodeClass{defaultClass(c.profiles)}, make([]sharedClass, 1)
	}
	c.checkTogether(d)
	if err := d.err(); err != nil {
		return nil, err
	}
	c.origin = make(map[string]queue.Position, len(d.offsets))
	for path, at := range d.offsets {
		c.origin[path] = d.positionAt(at.key)
	}
	c.warnOfLive()
	return c, nil
}

// warnOfLive warns of settings of [live] that are right and hardly what is meant.
func (c *Config) warnOfLive() {
	l := &c.Live
	warn := func(path, format string, args ...any) {
		at := c.origin[path]
		for at.Line == 0 && path != "" {
			path = path[:max(0, strings.LastIndexByte(path, '.'))]
			at = c.origin[path]
		}
		c.warnings = append(c.warnings, &KeyError{Pos: at, Msg: queue.Printable(fmt.Sprintf(format, args...))})
	}
	percent := func(path string, times float64) {
		if times > likelySlowdown {
			warn(path, "%s is %v: a job may run %v times as long as at default clocks; %v %% longer is %v", path,
				times,
				times, times, 1+times/100)
		}
	}
	percent("live.max_slowdown", l.MaxSlowdown)
	for _, partition := range slices.Sorted(maps.Keys(l.MaxSlowdowns)) {
		percent(joinKey("live.max_slowdowns", partition), l.MaxSlowdowns[partition])
	}
	if l.HoldOut == 0 && (l.Mode == live.Enforce ||
		slices.Contains(slices.Collect(maps.Values(l.Modes)), live.Enforce)) {
		warn("live.hold_out", "live.hold_out is 0 where clocks are set: without jobs to compare with it can't be measured "+
			"what they save")
	}
	for _, partition := range slices.Sorted(maps.Keys(l.Plan.Modes)) {
		if wanted, is := l.Plan.Modes[partition], l.PlanModeOf(partition); is != wanted {
			warn(joinKey("live.plan.modes", partition),
				"live.plan.modes has partition %s at %s, and no more than %s is done: "+
					"mode and modes of [live] are the most that a plan may do", quoteName(partition), wanted, is)
		}
	}
	reaches := l.PlanModeOf("") == l.Plan.Mode
	for partition := range l.Modes {
		_, own := l.Plan.Modes[partition]
		reaches = reaches || !own && l.PlanModeOf(partition) == l.Plan.Mode
	}
	if !reaches {
		warn("live.plan.mode", "live.plan.mode is %s, and no more than %s is done: mode and modes of [live] "+
			"are the most "+
			"that a plan may do", l.Plan.Mode, l.PlanModeOf(""))
	}
}

// likelySlowdown is the largest max_slowdown that is taken for one without a word: more is often a per cent.
const likelySlowdown = 2

// SlurmNames are the names that Slurm has, where it answers; nil: they aren't known.
type SlurmNames struct{ Partitions, Nodes []string }

// NamesIn returns the names of nodes, each with its partitions; nil: Slurm didn't say.
func NamesIn(nodes []slurm.Node) *SlurmNames {
	var names SlurmNames
	for i := range nodes {
		names.Nodes = append(names.Nodes, nodes[i].Name)
		names.Partitions = append(names.Partitions, nodes[i].Partitions...)
	}
	names.Partitions = sortedUnique(names.Partitions)
	return &names
}

// UnknownNames say which partitions and nodes the file names that Slurm doesn't have: what it says of them
// holds for nobody.
func (c *Config) UnknownNames(has *SlurmNames) []error {
	var all []error
	l := &c.Live
	look := func(path, kind string, names, known []string) {
		for _, name := range slices.Sorted(slices.Values(names)) {
			if known == nil || slices.Contains(known, name) {
				continue
			}
			at := c.origin[joinKey(path, name)]
			if at.Line == 0 {
				at = c.origin[path]
			}
			all = append(all, &KeyError{Pos: at, Msg: fmt.Sprintf("%s has %s %s, which Slurm doesn't have, %s", path, kind,
				quoteName(name), suggestNames(spelling.Nearest(name, known), known, quoteName))})
		}
	}
	for _, table := range []struct {
		path  string
		names []string
	}{
		{"live.modes", slices.Collect(maps.Keys(l.Modes))},
		{"live.max_slowdowns", slices.Collect(maps.Keys(l.MaxSlowdowns))},
		{"live.min_gains", slices.Collect(maps.Keys(l.MinGains))},
		{"live.reorders", slices.Collect(maps.Keys(l.Reorders))},
		{"live.limit_hints", slices.Collect(maps.Keys(l.LimitHint.OnIn))},
		{"live.plan.modes", slices.Collect(maps.Keys(l.Plan.Modes))},
		{"live.plan.paces", slices.Collect(maps.Keys(l.Plan.Paces))},
		{"live.hours.slack_s", slices.Collect(maps.Keys(l.Hours.Slacks))},
		{"live.adapt.modes", slices.Collect(maps.Keys(l.Adapt.Modes))},
		{"live.cap.modes", slices.Collect(maps.Keys(l.Cap.Modes))},
		{"live.cap.limits", slices.Collect(maps.Keys(l.Cap.Limits))},
		{"live.profile.names", slices.Collect(maps.Keys(l.Profile.Names))},
		{"live.site_clocks.partitions", slices.Collect(maps.Keys(l.SiteClocks.Partitions))},
		{"budget.partitions_w", slices.Collect(maps.Keys(c.Budget.Partitions))},
	} {
		look(table.path, "partition", table.names, has.Partitions)
	}
	look("live.site_clocks.nodes", "node", slices.Collect(maps.Keys(l.SiteClocks.byNode)), has.Nodes)
	look("budget."+budgetNodes, "node", c.Budget.allNodes(), has.Nodes)
	return all
}

// Warnings say what should be written otherwise in the file, which is taken all the same.
func (c *Config) Warnings() []error { return c.warnings }

// FactorSeriesFile returns the file with factors over time; empty where none is named.
func (c *Config) FactorSeriesFile() string { return c.resolvePath("factors.series", c.Factors.Series) }

// BudgetSeriesFile returns the file with budgets over time; empty where none is named.
func (c *Config) BudgetSeriesFile() string { return c.resolvePath("budget.series", c.Budget.Series) }

// NodesAt returns where the file says how many GPUs the nodes of a class have; the zero
// position where it has no classes.
func (c *Config) NodesAt(class int) queue.Position {
	return c.origin[fmt.Sprintf("cluster.nodes[%d].gpus", class)]
}

// HasNodes reports whether the file describes a cluster; without, the nodes are
// those of [Default].
func (c *Config) HasNodes() bool { return c.NodesAt(0).Line > 0 }

// checkTogether notes values that are fine alone but not with each other.
func (c *Config) checkTogether(d *document) {
	if c.start == startSlot && c.cluster.Slot == 0 {
		d.faultAt("cluster.start", `cluster.start is "slot", want slot_s above 0 with it`)
	}
	if on := c.runtimeOn; on != "" && on != queue.AnyModel {
		if _, err := c.profiles.Lookup(on); err != nil {
			d.faultAt("cluster.runtime_gpu_model", "%v", err)
		}
	}
	for _, speed := range c.Speeds() {
		if _, err := c.profiles.Lookup(speed.Model); err != nil {
			d.faultAt("cluster.gpu_speeds", "%v", err)
		}
	}
	switch s, online := &c.Safety, c.Policy.Online; {
	case s.Pace > s.MaxTurnaround:
		d.faultAt("safety.pace", "safety.pace is %v, want max_turnaround, %v, at most", s.Pace, s.MaxTurnaround)
	case policy.PaceOf(online) > s.MaxTurnaround:
		d.faultAt("policy.online", "policy.online is %q, want a pace of max_turnaround, %v, at most", online,
			s.MaxTurnaround)
	case s.Pace != 1 && online != Best:
		d.faultAt("safety.pace", "safety.pace is %v, want it left out, or policy.online %q: %q doesn't go by it",
			s.Pace, Best, online)
	}
	c.Live.checkTogether(d, c.profiles)
	c.Live.Hours.check(d, &c.Factors)
	c.Live.Plan.checkPaces(d, c.Safety.MaxTurnaround)
	c.Predict.checkTogether(d)
	c.Factors.checkTogether(d)
	c.Budget.checkTogether(d)
	c.Web.checkTogether(d)
	c.sharedGPU.checkTogether(d)
	c.objective.checkTogether(d, &c.Factors)
}

// fields returns the keys of a configuration file. GPU models come before the
// nodes that name them.
func (c *Config) fields() []field {
	gpu, nodes := field{key: "gpu"}, field{key: "nodes"}
	faulty := false
	gpu.read = func(d *document, path string, v any) {
		c.gpus = decodeProfiles(d, path, v)
		c.profiles = c.profiles.With(newProfiles(c.gpus, nil))
		faulty = len(d.faults) > 0
	}
	nodes.read = func(d *document, path string, v any) { c.decodeNodes(d, path, v, faulty) }
	return []field{
		gpu,
		tableField("objective", c.objective.fields()),
		tableField("policy", c.Policy.fields()),
		tableField("safety", c.Safety.fields()),
		tableField("live", append(c.Live.fields(), tableField("pick", c.Live.Pick.fields()),
			tableField("plan", c.Live.Plan.fields()), tableField("hours", c.Live.Hours.fields()),
			tableField("sharing", c.Live.Sharing.fields()),
			tableField("adapt", c.Live.Adapt.fields()), tableField("cap", c.Live.Cap.fields()),
			tableField("profile", c.Live.Profile.fields()))),
		tableField("predict", c.Predict.fields()),
		tableField("records", c.Records.fields()),
		tableField("factors", c.Factors.fields()),
		tableField("budget", c.Budget.fields()),
		tableField("web", append(c.Web.fields(), tableField("oidc", c.Web.OIDC.fields()))),
		tableField("cluster", append(c.clusterFields(), tableField("sharing", c.sharedGPU.fields()), nodes)),
	}
}

func (p *Policy) fields() []field {
	return []field{
		checkedField(lineField("offline",
			"Policy for batches whose jobs are all there: best, or one such as edl:0.9.", &p.Offline), checkPolicy),
		checkedField(lineField("online", "Policy for jobs that arrive over time.", &p.Online),
			checkPolicy),
		numberField("theta",
			"Fraction of its optimal time to which a job may be shortened to fit a gap; 1: not at all.",
			&p.Theta, numberRange{max: 1, above: true}),
		numberField("rho", "Slots (seconds, if slot_s is 0) that an idle node waits before it is switched off.",
			&p.Rho, numberRange{max: 1e9}),
	}
}

func (s *Safety) fields() []field {
	return []field{
		numberField("limit_margin", "A job's predicted run time × (1 + this) must meet its time limit.",
			&s.LimitMargin, numberRange{max: 100}),
		numberField("deadline_margin_s", "Seconds by which a job must end before its deadline.",
			&s.DeadlineMargin, nonNegativeRange),
		numberField("max_turnaround",
			"Bound on the end of a job without a deadline, in all plans: this multiple of its time from\n"+
				"submission to end under first come, first served at default clocks. Run times: max_slowdown in\n"+
				"[live].",
			&s.MaxTurnaround, numberRange{min: 1, max: MaxFactor}),
		numberField("pace",
			"Bound on the mean turnaround of jobs that arrive over time: this multiple of EASY backfilling's\n"+
				"at default clocks, up to max_turnaround. The best policy aims at it, and may exceed it where\n"+
				"hardly anybody waits. A job with a deadline only has to meet it.",
			&s.Pace, numberRange{min: 1, max: MaxFactor}),
	}
}

// checkPolicy accepts what [policy.Parse] does, and [Best].
func checkPolicy(text string) error {
	if text == Best {
		return nil
	}
	_, err := policy.Parse(text, policy.DefaultParams())
	wrong, ok := errors.AsType[*policy.SyntaxError](err)
	if !ok {
		return err
	}
	known := slices.Concat([]string{Best}, policy.Names(), policy.PlacementNames())
	name, _, _ := strings.Cut(text, ",")
	name, _, _ = strings.Cut(name, ":")
	if near := spelling.Nearest(name, known); near != "" && !slices.Contains(known, name) {
		return fmt.Errorf("unknown policy %s, did you mean %s?", quoteName(name), quoteName(near))
	}
	return errors.New(wrong.Msg)
}

// CheckClocks reports the nodes whose GPUs can't be planned with clocks: plans refuse
// them, while epd needs none, as GPUs tell it theirs. The error is a [FileError].
func (c *Config) CheckClocks() error {
	var faults []*KeyError
	for i := range c.cluster.Classes {
		p, err := c.profiles.Lookup(c.cluster.Classes[i].Model)
		if err == nil && p.Range == "" {
			_, err = p.Table()
		}
		if err != nil {
			at := c.origin[fmt.Sprintf("cluster.nodes[%d].gpu_model", i)]
			faults = append(faults, &KeyError{Pos: at, Msg: err.Error()})
		}
	}
	return fileError(faults)
}

// EstimateWarnings say of which GPU models of a cluster plans rest on values that nobody
// measured.
func EstimateWarnings(cluster *planner.Cluster, profiles *Profiles) []error {
	var warnings []error
	seen := make(map[string]bool)
	for i := range cluster.Classes {
		k := &cluster.Classes[i]
		p := profiles.Find(k.Model)
		if p == nil || seen[p.Name] {
			continue
		}
		if keys := p.PlanEstimates(k.IdleW != p.IdleW); len(keys) > 0 {
			seen[p.Name] = true
			warnings = append(warnings, &queue.Warning{Kind: queue.WarnEstimate, Err: fmt.Errorf("GPU model %s: "+
				"the plan rests on estimates of %s, not on measurements (epplan gpus %s)",
				p.Name, andText(keys), p.Name)})
		}
	}
	return warnings
}

// andText is "a, b and c", or "a".
func andText(keys []string) string {
	last := len(keys) - 1
	if last == 0 {
		return keys[0]
	}
	return strings.Join(keys[:last], ", ") + " and " + keys[last]
}

// Profiles returns the GPU models that the configuration knows.
func (c *Config) Profiles() *Profiles { return c.profiles }

// Digest returns the name of a configuration's text, by which what is in force can be
// told from what is in a file.
func Digest(text []byte) string {
	const bytes = 6
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:bytes])
}
