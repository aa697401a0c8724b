package slurm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// These answers are not recorded: they are written after the documented OpenAPI
// schemas of the data_parser plugins v0.0.39 (23.02), v0.0.40 (23.11), v0.0.41
// (24.05) and v0.0.42 on (24.11 and later).
//
//nolint:lll // answers as they are
var squeueVariants = map[string]string{
	"23.02": `{"meta":{"Slurm":{"version":{"major":23,"micro":1,"minor":2},"release":"23.02.1"}},"errors":[],"jobs":[{
	 "job_id":7,"array_job_id":{"set":true,"infinite":false,"number":5},"array_task_id":{"set":true,"infinite":false,"number":2},"job_state":"RUNNING",
	 "name":"n","nodes":"n[1-2]","job_resources":{"nodes":"n[1-2]","allocated_nodes":[]},"gres_detail":["gpu:a:1(IDX:0)","gpu:a:1(IDX:3)"],
	 "priority":{"set":true,"infinite":false,"number":99},"nice":10,"time_limit":{"set":true,"infinite":false,"number":60},"start_time":1795251323,"suspend_time":1795251400,
	 "exit_code":0,"user_id":1000,"user_name":"u","requeue":true,"restart_cnt":1,"node_count":{"set":true,"infinite":false,"number":2},"tres_req_str":"cpu=2,gres/gpu=2","brand_new":{"a":[1]}}]}`,
	"23.11": `{"jobs":[{
	 "job_id":7,"array_job_id":{"set":true,"infinite":false,"number":5},"array_task_id":{"set":true,"infinite":false,"number":2},"job_state":["RUNNING","COMPLETING"],
	 "name":"n","nodes":"n[1-2]","job_resources":{"nodes":"n[1-2]","allocated_nodes":[]},"gres_detail":["gpu:a:1(IDX:0)","gpu:a:1(IDX:3)"],
	 "priority":{"set":true,"infinite":false,"number":99},"nice":10,"time_limit":{"set":true,"infinite":false,"number":60},"start_time":{"set":true,"infinite":false,"number":1795251323},"suspend_time":{"set":true,"infinite":false,"number":1795251400},
	 "exit_code":{"status":["SUCCESS"],"return_code":{"set":true,"infinite":false,"number":0},"signal":{"id":{"set":false,"infinite":false,"number":0},"name":""}},
	 "user_id":1000,"user_name":"u","requeue":true,"restart_cnt":1,"node_count":{"set":true,"infinite":false,"number":2},"tres_req_str":"cpu=2,gres/gpu=2","shared":["none"]}],
	 "last_backfill":{"set":true,"infinite":false,"number":1},"meta":{"slurm":{"version":{"major":"23","micro":"1","minor":"11"}}},"errors":[],"warnings":[]}`,
	"24.11": `{"jobs":[{
	 "job_id":7,"array_job_id":{"set":true,"infinite":false,"number":5},"array_task_id":{"set":true,"infinite":false,"number":2},"job_state":["RUNNING"],
	 "name":"n","nodes":"n[1-2]","job_resources":{"select_type":["CORE"],"nodes":{"count":2,"select_type":["AVAILABLE"],"list":"n[1-2]","whole":false,"allocation":[]},"cpus":2,"threads_per_core":{"set":false,"infinite":false,"number":0}},
	 "gres_detail":["gpu:a:1(IDX:0)","gpu:a:1(IDX:3)"],"priority":{"set":true,"infinite":false,"number":99},"nice":10,"time_limit":{"set":true,"infinite":false,"number":60},
	 "start_time":{"set":true,"infinite":false,"number":1795251323},"suspend_time":{"set":true,"infinite":false,"number":1795251400},"exit_code":{"status":["SUCCESS"],"return_code":{"set":true,"infinite":false,"number":0},"signal":{"id":{"set":false,"infinite":false,"number":0},"name":""}},
	 "user_id":1000,"user_name":"u","requeue":true,"restart_cnt":1,"node_count":{"set":true,"infinite":false,"number":2},"tres_req_str":"cpu=2,gres/gpu=2","stdout_expanded":"x"}],
	 "meta":{"slurm":{"version":{"major":"24","micro":"1","minor":"11"}}},"errors":[],"warnings":[]}`,
}

func TestJobsOfLaterVersionsReadTheSame(t *testing.T) {
	for release, answer := range squeueVariants {
		jobs, meta, err := parseJobs("squeue --json", []byte(answer))
		if err != nil || len(jobs) != 1 {
			t.Errorf("%s: %v", release, err)
			continue
		}
		j := jobs[0]
		if !strings.HasPrefix(meta.Version.String(), release) {
			t.Errorf("%s: version %s", release, meta.Version)
		}
		if j.ID != 7 || j.ArrayJob != 5 || j.ArrayTask != 2 || j.State.Base != slurm.Running ||
			j.Priority != 99 || j.Nice != 10 || j.TimeLimit != live.LimitOf(time.Hour) ||
			j.Start.Unix() != 1795251323 || j.Suspended.Unix() != 1795251400 || j.NodeCount != 2 ||
			j.Requested.GPUs() != 2 || j.Restarts != 1 || j.UID != 1000 || j.Exit != (slurm.ExitStatus{}) {
			t.Errorf("%s: %+v", release, j)
		}
		if len(j.Gres) != 2 || j.Gres[1].Node != "n2" || j.Gres[1].Gres[0].Index[0] != 3 {
			t.Errorf("%s: devices %+v", release, j.Gres)
		}
	}
}

func TestTextSaysWhenAJobWasSuspended(t *testing.T) {
	for said, want := range map[string]time.Time{
		"None":                {},
		"2026-11-21T09:00:00": time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
	} {
		text := strings.Replace(string(genuine("x", "y")), "SuspendTime=None", "SuspendTime="+said, 1)
		j, err := slurm.ParseJobText("scontrol", []byte(text), 21, time.UTC)
		if err != nil || !j.Suspended.Equal(want) {
			t.Errorf("%s: %s, %v", said, j.Suspended, err)
		}
	}
}

func TestNumbersThatAreUnsetOrInfinite(t *testing.T) {
	const job = `{"jobs":[{"job_id":1,"job_state":["PENDING"],"time_limit":%,"array_job_id":{"set":false,"infinite":false,"number":0}}]}`
	for value, want := range map[string]live.Limit{
		`null`: {}, `{"set":false,"infinite":false,"number":0}`: {},
		`{"set":true,"infinite":true,"number":0}`:  live.Unlimited(),
		`{"set":false,"infinite":true,"number":0}`: live.Unlimited(),
		`4294967294`: {}, `4294967295`: live.Unlimited(), `"UNLIMITED"`: live.Unlimited(),
		`"60"`: live.LimitOf(time.Hour), `{"new":"shape"}`: {}, `[1]`: {}, `true`: {},
		`6e1`: live.LimitOf(time.Hour),
	} {
		jobs, _, err := parseJobs("squeue", []byte(strings.Replace(job, "%", value, 1)))
		if err != nil || jobs[0].TimeLimit != want || jobs[0].ArrayJob != 0 || jobs[0].ArrayTask != -1 {
			t.Errorf("%s: %+v, %v", value, jobs, err)
		}
	}
}

func TestAccountingJSONOfLaterVersions(t *testing.T) {
	//nolint:lll // an answer as it is
	const answer = `{"jobs":[{"job_id":9,"name":"x","user":"u","state":{"current":["CANCELLED"],"reason":"None"},"array":{"job_id":8,"task_id":{"set":true,"infinite":false,"number":1}},
	"het":{"job_id":0,"job_offset":{"set":false,"infinite":false,"number":0}},"time":{"elapsed":5,"start":1795251323,"end":1795251328,"submission":1795251320,"limit":{"set":true,"infinite":false,"number":60}},
	"exit_code":{"status":["SIGNALED"],"return_code":{"set":false,"infinite":false,"number":0},"signal":{"id":{"set":true,"infinite":false,"number":9},"name":"KILL"}},"nodes":"n1","restart_cnt":2,
	"tres":{"allocated":[{"type":"gres","name":"gpu","id":1001,"count":2},{"type":"mem","name":"","id":2,"count":100}]},"steps":[{"statistics":{"energy":{"consumed":{"set":true,"infinite":false,"number":1200}}}},{"statistics":{"energy":{"consumed":300}}}]}]}`
	list, _, err := parseAccountingJSON("sacct --json", []byte(answer))
	if err != nil || len(list) != 1 {
		t.Fatal(err)
	}
	o := list[0]
	if o.Energy != 1500 || o.Exit.Signal != 9 || o.Ref.Job != 8 || o.Ref.Task != 1 || o.Restarts != 2 ||
		o.TimeLimit != live.LimitOf(time.Hour) || o.Allocated.GPUs() != 2 || o.Allocated["mem"] != 100<<20 ||
		o.State.Base != slurm.Cancelled {
		t.Errorf("%+v", o)
	}
}

func TestAccountingSaysForHowLongAJobWasSuspended(t *testing.T) {
	for cell, want := range map[string]time.Duration{
		"00:00:00": 0, "00:01:30": 90 * time.Second,
		"1-00:00:02": 24*time.Hour + 2*time.Second, "": 0, "INVALID": 0,
	} {
		rows, rejected, err := slurm.ParseAccounting("sacct",
			[]byte("JobIDRaw|State|Suspended\n7|COMPLETED|"+cell+"\n"), "|", time.UTC)
		if err != nil || len(rejected) > 0 || len(rows) != 1 || rows[0].Suspended != want {
			t.Errorf("%q: %+v, %+v, %v", cell, rows, rejected, err)
		}
	}
	for cell, want := range map[string]time.Duration{
		"0": 0, "90": 90 * time.Second,
		`{"set":true,"infinite":false,"number":90}`: 90 * time.Second, "-1": 0,
	} {
		rows, _, err := parseAccountingJSON("sacct --json",
			[]byte(`{"jobs":[{"job_id":7,"state":{"current":"COMPLETED"},"time":{"suspended":`+cell+`}}]}`))
		if err != nil || len(rows) != 1 || rows[0].Suspended != want {
			t.Errorf("%s: %+v, %v", cell, rows, err)
		}
	}
	if !slices.Contains(slurm.AccountingColumns, "Suspended") {
		t.Error("it isn't asked for")
	}
}

func TestATornOrForeignAnswerIsAnErrorWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ answer, at string }{
		"torn":        {"{\"jobs\":[\n{\"job_id\":1,\"name\":\"a", ":2:"},
		"not json":    {"slurm_load_jobs error: x", ":1:1"},
		"empty":       {"", ":1:1"},
		"no jobs":     {"{}", ":1:"},
		"no list":     {`{"jobs":{}}`, ":1:"},
		"bad escape":  {`{"jobs":[{"job_id":1,"name":"\q"}]}`, ":1:"},
		"list inside": {`[1]`, ":1:"},
	} {
		_, _, err := parseJobs("squeue --json", []byte(c.answer))
		var at *slurm.ParseError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.at) {
			t.Errorf("%s: %v", name, err)
		}
	}
	jobs, meta, err := parseJobs("squeue",
		[]byte(`{"errors":[{"error":"Invalid time\nspecification","error_number":7}]}`))
	if err != nil || len(jobs) != 0 || len(meta.Errors) != 1 || strings.Contains(meta.Errors[0], "\n") {
		t.Errorf("%v %+v %v", jobs, meta, err)
	}
}
