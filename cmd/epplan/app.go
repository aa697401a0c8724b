package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/cli/completion"
	"github.com/epplan/epplan/internal/cli/manual"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/planner/policy"
)

// version is set by the linker in make build.
var version = "devel"

func newProgram() *terminal.Program {
	return &terminal.Program{
		Name:  "epplan",
		Usage: "plan batches of GPU jobs that use little energy and miss no deadline",
		Description: "epplan help COMMAND tells more. Results go to standard output, everything else to standard error.\n" +
			"Exit status: 0 done, 1 failed, 2 usage, 3 some jobs can't be planned in time, 4 can't reach " +
			"epd, 130 interrupted.\n" +
			"Slurm calls further ones: prolog, epilog, suspend and resume.\n\n" +
			"Example: epplan plan batch.csv --cluster cluster.toml --models models.toml",
		Version:  version,
		Commands: commands,
		Groups:   groups,
		Values:   completionValues(),
		Moved:    movedSpellings(),
		Pages:    manualPages(),
	}
}

// groups are those of the commands for people; the others are called by Slurm, but for a help on them.
var groups = []terminal.Group{
	{Name: "Plan", Commands: []string{"plan", "compare", "explain", "flex", "replay", "gpus", "model"}},
	{Name: "Jobs on Slurm", Commands: []string{"estimate", "submit", "jobs", "job"}},
	{Name: "A cluster with epd", Commands: []string{
		"status", "savings", "report", "levers", "budget", "install", "doctor", "reload", "restore",
	}},
	{Name: "Data", Commands: []string{"import", "history", "audit", "predict", "profile"}},
	{Name: "The program", Commands: []string{"init", "config", "completion", "man", "version"}},
}

func commands(t *terminal.Terminal) []*cli.Command {
	return []*cli.Command{
		planCommand(t),
		compareCommand(t),
		explainCommand(t),
		modelCommand(t),
		importCommand(t),
		replayCommand(t),
		installCommand(t),
		doctorCommand(t),
		statusCommand(t),
		jobsCommand(t),
		jobCommand(t),
		savingsCommand(t),
		reportCommand(t),
		historyCommand(t),
		auditCommand(t),
		estimateCommand(t),
		predictCommand(t),
		reloadCommand(t),
		leversCommand(t),
		budgetCommand(t),
		flexCommand(t),
		profileCommand(t),
		restoreCommand(t),
		prologCommand(t),
		epilogCommand(t),
		submitCommand(t),
		powerCommand(t, "suspend", "Slurm's SuspendProgram: switch nodes off by the site's own command"),
		powerCommand(t, "resume", "Slurm's ResumeProgram: switch nodes on by the site's own command"),
		initCommand(t),
		configCommand(t),
		gpusCommand(t),
	}
}

// movedSpellings returns the spellings of what the laboratory has, see [program].
func movedSpellings() map[string]string {
	const lab = "it is of the laboratory now: epplab "
	all := map[string]string{
		"model contention":       lab + "contention",
		"import openb":           lab + "trace",
		"plan --format knapsack": lab + "plan",
		"plan --energy-model":    lab + "plan",
		"plan --kappa":           lab + "plan",
		"profile --log":          "epplan profile --json | epplab profile-log -",
		"replay --format openb":  lab + "replay",
		"compare --slurm-array":  "job arrays are of epplab replay alone: run it without, or a batch at a time",
	}
	for _, command := range []string{"consolidate", "correlate", "generate", "reproduce", "tune"} {
		all[command] = lab + command
	}
	for _, flag := range []string{"code", "code-test", "gpu-type", "probe", "embeddings", "align"} {
		all["predict --"+flag] = lab + "predict"
	}
	for _, flag := range []string{
		"pods", "nodes", "power", "family", "arrivals", "node-order", "seeds", "load", "base", "loads", "curve",
		"decisions", "svg", "batch", "jobs", "departures", "slurm-array",
	} {
		all["replay --"+flag] = lab + "replay"
	}
	return all
}

// manualPages returns what the manual pages have in common.
func manualPages() manual.Book {
	return manual.Book{
		ExitStatus: []manual.Entry{
			{Term: "0", Text: "Done"},
			{Term: "1", Text: "Failed: an input is wrong, a file can't be read or written"},
			{Term: "2", Text: "The command line is wrong"},
			{Term: "3", Text: "The plan was printed, but some jobs can't be planned or end late"},
			{Term: "4", Text: "Nobody answers at epd's socket"},
			{Term: "130", Text: "Interrupted; what was being written was left as it was"},
		},
		Files: []manual.File{
			{
				Entry: manual.Entry{
					Term: "/etc/epplan/config.toml",
					Text: "The configuration, as packages install it; epplan config init writes one " +
						"with the defaults",
				}, Flags: []string{"config"},
			},
			{
				Entry: manual.Entry{Term: epdapi.AgentSocket, Text: "Where the epd of a node answers"},
				Flags: []string{"socket"},
			},
			{
				Entry: manual.Entry{
					Term: epdapi.ControllerSocket, Text: "Where the controller answers administrators",
				}, Flags: []string{"socket"},
			},
			{
				Entry: manual.Entry{Term: epdapi.PublicSocket, Text: "Where the controller answers users " +
					"and job_submit.lua"}, Flags: []string{"socket", "submit-socket"},
			},
			{
				Entry: manual.Entry{
					Term: "/var/lib/epplan/journal",
					Text: "Which clocks are locked, for giving them back when epd doesn't run",
				}, Flags: []string{"journal"},
			},
		},
		SeeAlso: []string{"epd(8)"},
	}
}

// completionValues returns the values of flags and arguments that have a few.
func completionValues() completion.Values {
	words := func(words ...string) func() []string { return func() []string { return words } }
	models := func() []string { return config.BuiltinProfiles().Names() }
	policies := func() []string { return slices.Concat(policy.Names(), policy.PlacementNames()) }
	return completion.Values{
		"completion":                completion.Shells,
		"gpus":                      models,
		"plan --policy":             policies,
		"explain --policy":          policies,
		"compare --policy":          policies,
		"replay --policy":           policies,
		"--gpu-model":               models,
		"plan --format":             words("auto", "csv", "json", "edl"),
		"explain --format":          words("auto", "csv", "json", "edl"),
		"compare --format":          words("auto", "csv", "json", "edl"),
		"replay --format":           words("sacct", "jobs"),
		"--range":                   words("wide", "narrow"),
		"--start":                   words("slot", "continuous"),
		"model optimum --objective": words("energy", "edp", "ed2p", "time"),
		"model fit --form":          words("best", "paper"),
		"predict --target":          words("time", "energy", "power"),
		"jobs --state": words("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED",
			"TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE",
			"LAUNCH_FAILED"),
	}
}
