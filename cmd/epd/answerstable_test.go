package main

import (
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// cell is what somebody gets.
type cell string

const (
	both    cell = "both"   // an answer with what is of either person with jobs
	herOwn  cell = "hers"   // one with what is of her alone: she is the owner
	own     cell = "own"    // one with what is the caller's own, and of nobody else
	none    cell = "none"   // one that names nobody
	any200  cell = "any"    // one that may name anybody
	done    cell = "done"   // it is carried out, or refused for what it says
	no403   cell = "403"    // who may not ask
	no404   cell = "404"    // what isn't there, or isn't theirs
	no401   cell = "401"    // whom nobody vouches for
	no405   cell = "405"    // what isn't possible at that door
	toLogin cell = "log in" // led to the toLogin
)

// answer is a row: one question, and what each tier gets.
type answer struct {
	operation string // pattern of the API, or of a page
	path      string // with its query; empty: the pattern's own
	body      any
	control   cell
	operator  cell
	owner     cell // whose job is asked for
	another   cell // a user with jobs of their own; who has none gets none of them
}

// answers are what docs/reference/api.md says of who may ask for what. A tilde stands
// for her first job, an exclamation mark for her workload.
var answers = []answer{
	{"GET /v1/status", "", nil, any200, none, none, none},
	{"GET /v1/overview", "", nil, both, both, own, own},
	{"GET /v1/jobs", "", nil, both, both, own, own},
	{"GET /v1/jobs", "/v1/jobs?user=uucp", nil, herOwn, herOwn, herOwn, none},
	{"GET /v1/jobs", "/v1/jobs?account=zzuucp-account", nil, herOwn, herOwn, herOwn, none},
	{"GET /v1/jobs", "/v1/jobs?workload=!", nil, herOwn, herOwn, herOwn, none},
	{"GET /v1/jobs/{id}", "/v1/jobs/~", nil, herOwn, herOwn, herOwn, no404},
	{"GET /v1/jobs/{id}", "/v1/jobs/771900", nil, herOwn, herOwn, herOwn, no404}, // it waits
	{"GET /v1/jobs/{id}", "/v1/jobs/999999", nil, no404, no404, no404, no404},
	{"GET /v1/jobs/{id}/series", "/v1/jobs/~/series", nil, herOwn, herOwn, herOwn, no404},
	{"GET /v1/decisions", "", nil, both, both, own, own},
	{"GET /v1/nodes", "", nil, both, both, own, own},
	{"GET /v1/models", "", nil, both, both, no403, no403},
	{"GET /v1/models", "/v1/models?workload=!&gpu_model=V100", nil, herOwn, herOwn, no403, no403},
	{"GET /v1/models/fit", "/v1/models/fit?workload=!&gpu_model=V100", nil, herOwn, herOwn, no403, no403},
	{"GET /v1/profiles", "", nil, any200, any200, no403, no403},
	{"GET /v1/savings", "", nil, any200, any200, none, none},
	{"GET /v1/usage", "", nil, any200, any200, own, own},
	{"GET /v1/usage", "/v1/usage?own=true&by=workload", nil, none, any200, own, own},
	{"GET /v1/queue", "", nil, both, both, own, own},
	{"GET /v1/history", "", nil, both, both, own, own},
	{"GET /v1/runs", "/v1/runs?node=zznode-u", nil, herOwn, no403, no403, no403},
	{"GET /v1/levers", "", nil, both, both, own, own},
	{"POST /v1/estimate", "", submission(&hers), none, none, none, none},
	{"POST /v1/code", "", coded(&hers), none, none, none, none},
	{"POST /v1/submit", "", submission(&hers), done, no403, no403, no403},
	{"POST /v1/decide", "", decideRequest(&hers, 900), done, no403, no403, no403},
	{"POST /v1/outcome", "", &record.Outcome{RunID: "r", JobID: 1}, done, no403, no403, no403},
	{"POST /v1/outlook", "", map[string]any{"job_id": hers.first, "run_id": "r"}, done, no403, no403, no403},
	{"POST /v1/report", "", &epdapi.NodeReport{Node: "n3"}, done, no403, no403, no403},
	{"POST /v1/lease", "", &epdapi.LeaseRequest{Node: "n3"}, done, no403, no403, no403},
	{"GET /v1/budget", "", nil, any200, any200, none, none},
	{"POST /v1/budget", "", &epdapi.BudgetEvent{Watts: 1}, done, no403, no403, no403},
	{"POST /v1/budget/cancel", "", &epdapi.BudgetCancel{ID: "r"}, no404, no403, no403, no403},
	{
		"POST /v1/models/use", "", &epdapi.ModelChoice{Workload: "!", GPUModel: "V100"},
		done, no403, no403, no403,
	},
	{"POST /v1/history", "", &epdapi.History{Jobs: []record.HistoryJob{}}, done, no403, no403, no403},
	{"POST /v1/reload", "", nil, done, no403, no403, no403},
	{
		"POST /v1/power", "", &epdapi.PowerEvent{Action: "suspend", Nodes: []string{"n3"}},
		done, no403, no403, no403,
	},
	{"POST /v1/runs/forget", "", &epdapi.RunIDs{}, done, no403, no403, no403},
	{"POST /v1/runs/remember", "", &epdapi.RunList{}, done, no403, no403, no403},
	{"POST /v1/levers/undo", "", struct{}{}, done, no403, no403, no403},
	// The agent's are answered at its own socket alone, see below.
	{"POST /v1/prolog", "", struct{}{}, no404, no404, no404, no404},
	{"POST /v1/epilog", "", struct{}{}, no404, no404, no404, no404},
	{"POST /v1/restore", "", struct{}{}, no404, no404, no404, no404},
}

// shown is a page, and the operations that answer what it shows.
type shown struct {
	answer
	by []string
}

// pages are what docs/web.md says of who sees what, with the operations that answer
// the same: no page shows what none of them does.
var pages = []shown{
	{
		answer{"/{$}", "/", nil, any200, any200, own, own},
		[]string{"GET /v1/overview", "GET /v1/status", "GET /v1/queue", "GET /v1/levers", "GET /v1/nodes"},
	},
	{answer{"/queue", "", nil, both, both, own, own}, []string{"GET /v1/queue", "GET /v1/levers"}},
	{answer{"/jobs", "", nil, both, both, own, own}, []string{"GET /v1/jobs"}},
	{answer{"/jobs", "/jobs?user=uucp", nil, herOwn, herOwn, herOwn, none}, []string{"GET /v1/jobs"}},
	{
		answer{"/jobs/{id}", "/jobs/~", nil, herOwn, herOwn, herOwn, no404},
		[]string{"GET /v1/jobs/{id}", "GET /v1/jobs"},
	},
	{answer{"/jobs/{id}", "/jobs/999999", nil, no404, no404, no404, no404}, nil},
	{answer{"/nodes", "", nil, none, none, none, none}, []string{"GET /v1/nodes"}},
	{
		answer{"/nodes/{name}", "/nodes/zznode-u", nil, herOwn, herOwn, herOwn, none},
		[]string{"GET /v1/nodes"},
	},
	{answer{"/month", "", nil, any200, any200, no403, no403}, []string{"GET /v1/usage"}},
	{answer{"/workloads", "", nil, both, both, no403, no403}, []string{"GET /v1/models"}},
	{
		answer{"/workloads/{name}", "/workloads/!?gpu=V100", nil, herOwn, herOwn, no403, no403},
		[]string{"GET /v1/models", "GET /v1/models/fit"},
	},
	{
		answer{
			"/workloads/{name}/use", "/workloads/!/use?gpu=V100&version=1", nil, any200, no403, no403,
			no403,
		},
		[]string{"GET /v1/models"},
	},
	{answer{"whatIfPath", "/whatif?policy=edl", nil, any200, any200, own, own}, []string{"GET /v1/queue"}},
	{
		answer{"/admin", "", nil, any200, no403, no403, no403},
		[]string{"GET /v1/status", "GET /v1/levers", "GET /v1/models"},
	},
	{answer{"/admin/levers", "", nil, any200, no403, no403, no403}, []string{"GET /v1/levers"}},
	{answer{"/admin/reload", "", nil, any200, no403, no403, no403}, nil},
}

// actions are what pages do, by POST.
var actions = []string{"/workloads/{name}/use", "/admin/levers", "/admin/reload"}

// private is what Slurm's PrivateData hides from users of each other. What users get
// doesn't depend on it: they get what the strictest setting leaves, but for what
// stands here. Nodes are everybody's to see, see docs/web.md.
var private = map[string]struct{ hides, shown []string }{
	"none":  {},
	"jobs":  {[]string{"jobs"}, nil},
	"usage": {[]string{"usage"}, nil},
	"nodes": {[]string{"nodes"}, shownNodes},
	"all":   {[]string{"jobs", "usage", "nodes"}, shownNodes},
}

var shownNodes = []string{"/nodes", "/nodes/{name}", "GET /v1/nodes"}
