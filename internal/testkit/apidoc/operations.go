package apidoc

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm/hooks"
)

// Who may ask.
const (
	Root      = "root"      // on the node, by the agent's socket
	Control   = "control"   // root, Slurm's user and epd's own
	Nodes     = "nodes"     // these, and by its key a node for itself
	Operators = "operators" // these, and those whom [live] operators names
	Anybody   = "anybody"   // every user of the cluster; users see what concerns them alone
)

// Servers of paths.
const (
	Agent      = "agent"
	Controller = "controller"
)

// Param is a parameter of a query.
type Param struct{ Name, Meaning string }

// Operation is what one method of one path does.
type Operation struct {
	Method, Path string
	Server       string
	Who          string
	Summary      string
	Query        []Param
	Request      reflect.Type // of the body; nil: there is none
	Responses    []reflect.Type
}

// Pattern returns what epd's mux has it by.
func (o *Operation) Pattern() string { return o.Method + " " + o.Path }

// ID returns the operation's name.
func (o *Operation) ID() string {
	words := strings.FieldsFunc(strings.TrimPrefix(o.Path, "/v1"), func(r rune) bool {
		return strings.ContainsRune("/{}_-", r)
	})
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.ToLower(o.Method) + strings.Join(words, "")
}

// receipt is what tells that an outcome is on disk.
type receipt struct {
	Receipt string `json:"receipt"` // the agent keeps an outcome until it has one
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

func get(server, path, who, summary string, response reflect.Type, query ...Param) Operation {
	return Operation{
		Method: http.MethodGet, Path: path, Server: server, Who: who, Summary: summary, Query: query,
		Responses: []reflect.Type{response},
	}
}

func post(server, path, who, summary string, request, response reflect.Type, query ...Param) Operation {
	return Operation{
		Method: http.MethodPost, Path: path, Server: server, Who: who, Summary: summary, Query: query,
		Request: request, Responses: []reflect.Type{response},
	}
}

// Operations returns all of them, the agent's first.
func Operations() []Operation {
	return slices.Concat(agentOperations(), controllerOperations(), recordOperations(), budgetOperations())
}

func agentOperations() []Operation {
	return []Operation{
		post(Agent, epdapi.PathProlog, Root, "A job begins on the node: clocks are chosen and locked.",
			of[hooks.Event](), of[hooks.Answer]()),
		post(Agent, epdapi.PathEpilog, Root, "A job ended on the node: clocks are given back, and what it "+
			"took is recorded.", of[hooks.Event](), of[hooks.Answer]()),
		post(Agent, epdapi.PathRestore, Root, "Gives all clocks back, or those of some GPUs.",
			of[epdapi.RestoreRequest](), of[epdapi.RestoreAnswer]()),
		get(Agent, epdapi.PathStatus, Root, "What epd is doing.", of[epdapi.Status]()),
	}
}

func controllerOperations() []Operation {
	workload := Param{"workload", "of one workload"}
	model := Param{"gpu_model", "the GPU model"}
	models := get(Controller, epdapi.PathModels, Operators,
		"Models of workloads in use; with a workload, all versions of its model.", of[epdapi.ModelList](),
		workload, model)
	models.Responses = append(models.Responses, of[epdapi.ModelVersions]())
	return []Operation{
		post(Controller, epdapi.PathSubmit, Control, "A job is being submitted: job_submit.lua tells what "+
			"is known of it.", of[hooks.Submission](), of[hooks.SubmitAnswer]()),
		post(Controller, epdapi.PathDecide, Nodes, "An agent asks at which clocks a job runs on its node.",
			of[epdapi.DecideRequest](), of[live.Decision]()),
		post(Controller, epdapi.PathOutcome, Nodes, "An agent tells what a run took. 425: not yet, see "+
			"Retry-After.", of[record.Outcome](), of[receipt]()),
		post(Controller, epdapi.PathOutlook, Nodes, "An agent asks until when a run has to end.",
			of[epdapi.OutlookRequest](), of[live.Outlook]()),
		get(Controller, epdapi.PathStatus, Anybody, "What epd is doing.", of[epdapi.Status]()),
		get(Controller, epdapi.PathJobs, Anybody, "Jobs, newest first.", of[epdapi.JobPage](),
			Param{"user", "of one user"}, Param{"account", "of one account"},
			Param{"partition", "of one partition"}, Param{"state", "in one state"},
			Param{"since", "submitted from then on (RFC 3339)"},
			workload, Param{"before", "older than this: next of the page before"},
			Param{"limit", "at most so many, up to 1000"}),
		get(Controller, epdapi.PathJobs+"/{id}", Anybody, "A job: what was predicted, decided and measured.",
			of[epdapi.JobView]()),
		get(Controller, epdapi.PathJobs+"/{id}"+epdapi.SuffixSeries, Anybody,
			"What a job's runs drew and at which clocks, over time, beside what was predicted.",
			of[epdapi.JobSeries]()),
		get(Controller, epdapi.PathOverview, Anybody, "The cluster at a glance.", of[epdapi.Overview]()),
		get(Controller, epdapi.PathDecisions, Anybody, "Decisions, newest first.", of[epdapi.DecisionList](),
			Param{"mode", "in one mode"}, Param{"before", "older than this: next of the page before"},
			Param{"limit", "at most so many"}),
		get(Controller, epdapi.PathNodes, Anybody, "Nodes and their GPUs, as their agents told last.",
			of[epdapi.NodeList]()),
		post(Controller, epdapi.PathReport, Nodes, "An agent tells of its node and its GPUs.",
			of[epdapi.NodeReport](), of[epdapi.ReportAnswer]()),
		get(Controller, epdapi.PathFit, Operators, "The points behind a workload's model, and the "+
			"model's curve.", of[epdapi.ModelFit](), workload, model),
		models,
		post(Controller, epdapi.PathModelsUse, Control,
			"Chooses a version of a workload's model, or leaves the choice to epd again.",
			of[epdapi.ModelChoice](), of[epdapi.ModelStatus]()),
		get(Controller, epdapi.PathProfiles, Operators,
			"How workloads use their GPUs: of one, or of those that ran last.",
			of[epdapi.ProfileList](), workload),
		get(Controller, epdapi.PathSavings, Anybody, "What was saved: treated runs against held-out ones.",
			of[epdapi.Savings](), Param{"since", "ended from then on (RFC 3339)"},
			Param{"until", "ended before then (RFC 3339)"}),
		get(Controller, epdapi.PathUsage, Anybody, "What runs used, and what was saved by them: those of "+
			"all, for operators, or the caller's own.",
			of[epdapi.Usage](), Param{"since", "ended from then on (RFC 3339)"},
			Param{"until", "ended before then (RFC 3339)"},
			Param{"by", "user (the default), account, partition, workload or gpu"},
			Param{"own", "true: the caller's own runs alone"}),
		post(Controller, epdapi.PathEstimate, Anybody, "What a job would take, and at which clocks, if it "+
			"were submitted.", of[hooks.Submission](), of[epdapi.Estimate](), model),
		post(Controller, epdapi.PathCode, Anybody, "What the source code of a job that is about to be "+
			"submitted looks like.", of[epdapi.CodeRequest](), of[epdapi.CodeAnswer]()),
		get(Controller, epdapi.PathQueue, Anybody, "Slurm's queue and nodes, as something to plan.",
			of[epdapi.Queue]()),
		post(Controller, epdapi.PathHistory, Control, "Adds jobs that ended before epd was there.",
			of[epdapi.History](), of[epdapi.HistoryAdded]()),
		get(Controller, epdapi.PathHistory, Anybody, "Those jobs, by submission.", of[epdapi.HistoryPage](),
			Param{"since", "submitted from then on (RFC 3339)"},
			Param{"after", "submitted after, of the page before"}, Param{"after_id", "id of its last job"}),
		post(Controller, epdapi.PathReload, Control, "Reads the configuration again.", nil,
			of[epdapi.ReloadAnswer]()),
		post(Controller, epdapi.PathPower, Control, "Slurm powers nodes down or up: its programs tell.",
			of[epdapi.PowerEvent](), of[struct{}]()),
		get(Controller, epdapi.PathLevers, Anybody, "What is steered in Slurm now, and what is advised.",
			of[epdapi.Levers]()),
		post(Controller, epdapi.PathLeversUndo, Control, "Takes all of that back.", nil,
			of[epdapi.UndoLeversAnswer]()),
	}
}

// recordOperations are the controller's of single records.
func recordOperations() []Operation {
	return []Operation{
		get(Controller, epdapi.PathRuns, Control,
			"Recorded runs as they are, of a run, a job or a node: for epd db forget.", of[epdapi.RunPage](),
			Param{"run", "of one run id"}, Param{"job", "of one job id"}, Param{"node", "of one node"},
			Param{"since", "ended from then on (RFC 3339)"},
			Param{"until", "ended before (RFC 3339)"}, Param{"conflicts", "true: outcomes that lie apart, " +
				"as their runs have others"}, Param{"after", "next of the page before"}),
		post(Controller, epdapi.PathForget, Control, "Takes runs out of the records, and has models "+
			"learn anew.", of[epdapi.RunIDs](), of[epdapi.RunsChanged]()),
		post(Controller, epdapi.PathRemember, Control, "Puts back runs that were taken out.",
			of[epdapi.RunList](), of[epdapi.RunsChanged]()),
	}
}

// budgetOperations are the controller's of power budgets.
func budgetOperations() []Operation {
	return []Operation{
		post(Controller, epdapi.PathLease, Nodes, "What an agent tells of its GPUs under a power budget, in "+
			"exchange for the power limits that they may have for some seconds.", of[epdapi.LeaseRequest](),
			of[epdapi.LeaseAnswer]()),
		get(Controller, epdapi.PathBudget, Anybody, "Power budgets, with what the nodes are allowed and take, and "+
			"the events that lower them.", of[epdapi.BudgetList]()),
		post(Controller, epdapi.PathBudget, Control, "Lowers a budget for a time.", of[epdapi.BudgetEvent](),
			of[epdapi.BudgetEvent]()),
		post(Controller, epdapi.PathBudgetCancel, Control, "Takes an event back.", of[epdapi.BudgetCancel](),
			of[epdapi.BudgetEvent]()),
	}
}
