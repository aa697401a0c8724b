package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// jobJSON is a job of squeue --json. Fields that moved between versions appear
// in each of their forms; unknown ones are ignored.
type jobJSON struct {
	Account      text          `json:"account"`
	AdminComment text          `json:"admin_comment"`
	ArrayJob     number        `json:"array_job_id"`
	ArrayTask    number        `json:"array_task_id"`
	ArrayTasks   text          `json:"array_task_string"`
	Comment      text          `json:"comment"`
	Deadline     number        `json:"deadline"`
	Eligible     number        `json:"eligible_time"`
	End          number        `json:"end_time"`
	Exit         exitJSON      `json:"exit_code"`
	Features     text          `json:"features"`
	Gres         words         `json:"gres_detail"`
	HetJob       number        `json:"het_job_id"`
	HetOffset    number        `json:"het_job_offset"`
	ID           number        `json:"job_id"`
	Resources    resourcesJSON `json:"job_resources"`
	State        words         `json:"job_state"`
	Name         text          `json:"name"`
	Nice         number        `json:"nice"`
	NodeCount    number        `json:"node_count"`
	NodeList     text          `json:"nodes"`
	Partition    text          `json:"partition"`
	Prefer       text          `json:"prefer"`
	Priority     number        `json:"priority"`
	QOS          text          `json:"qos"`
	Reason       text          `json:"state_reason"`
	Requeue      flag          `json:"requeue"`
	Restarts     number        `json:"restart_cnt"`
	Start        number        `json:"start_time"`
	Submit       number        `json:"submit_time"`
	Suspended    number        `json:"suspend_time"`
	TimeLimit    number        `json:"time_limit"`
	TRESAlloc    text          `json:"tres_alloc_str"`
	TRESFreq     text          `json:"tres_freq"`
	TRESPerNode  text          `json:"tres_per_node"`
	TRESReq      text          `json:"tres_req_str"`
	UID          number        `json:"user_id"`
	User         text          `json:"user_name"`
}

// exitJSON is a wait status (22.05) or an object with return_code and signal (23.02 on).
type exitJSON struct{ Exit }

// UnmarshalJSON implements json.Unmarshaler.
func (e *exitJSON) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		var n number
		if err := n.UnmarshalJSON(b); err != nil {
			return err
		}
		e.Exit = exitFromWait(n.or(0))
		return nil
	}
	var object struct {
		Set    *bool
		Number number
		Code   number `json:"return_code"`
		Signal struct {
			ID    number `json:"id"`
			OldID number `json:"signal_id"`
		} `json:"signal"`
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return fmt.Errorf("exit code: %w", err)
	}
	if object.Number.set {
		e.Exit = exitFromWait(object.Number.or(0))
		return nil
	}
	e.Exit = Exit{Code: object.Code.bounded(0), Signal: object.Signal.ID.bounded(object.Signal.OldID.or(0))}
	return nil
}

// resourcesJSON gives the node names in the order of gres_detail: a hostlist
// (22.05 to 24.05) or an object with list (24.11 on). The rest has a record for
// each core of each node, and is passed over.
type resourcesJSON struct{ nodes text }

// readJSON implements selfReading.
func (r *resourcesJSON) readJSON(from jsonReader) error { return r.member(from, "nodes") }

// member reads the node names, or an object that has them as its member.
func (r *resourcesJSON) member(from jsonReader, name string) error {
	if from.PeekKind() != '{' {
		return from.SkipValue() //nolint:wrapcheck // the walk adds the place
	}
	return from.members(func(found []byte) any {
		switch {
		case string(found) != name:
			return nil
		case name == "nodes" && from.PeekKind() == '{':
			return hostsJSON{r}
		}
		return &r.nodes
	})
}

// hostsJSON is the object with list.
type hostsJSON struct{ *resourcesJSON }

// readJSON implements selfReading.
func (h hostsJSON) readJSON(from jsonReader) error { return h.member(from, "list") }

// ParseJobs reads the answer of squeue --json. Bytes that are not UTF-8 are
// kept as \xNN. A record that cannot be read ends it with a *ParseError.
func ParseJobs(source string, data []byte) ([]Job, Meta, error) {
	var jobs []Job
	meta, err := ScanJobs(source, bytes.NewReader(data), func(j *Job) error {
		jobs = append(jobs, *j)
		return nil
	})
	if err != nil {
		return nil, Meta{}, err
	}
	return jobs, meta, nil
}

// ScanJobs is ParseJobs for answers that don't fit in memory: each job is given
// as soon as it is read, and is the callee's for the call only; its texts, lists
// and maps may be kept. An answer that breaks off or turns into something else is
// an error after the jobs before that, so what they change must wait for the end.
// An error of each ends it and comes back as it is.
func ScanJobs(source string, r io.Reader, each func(*Job) error) (Meta, error) {
	a := streamAnswer(source, r)
	var raw jobJSON
	var job Job
	var refused error
	named := membersOf(&raw)
	err := a.walk(map[string]func() error{"jobs": func() error {
		raw = jobJSON{}
		if err := a.dec.members(func(name []byte) any { return named[string(name)] }); err != nil {
			return err
		}
		var err error
		if job, err = raw.job(); err != nil {
			return err
		}
		refused = each(&job)
		return refused
	}})
	if refused != nil {
		return Meta{}, refused
	}
	return a.meta, err
}

func (r *jobJSON) job() (Job, error) {
	j := Job{
		ID: r.ID.jobID(), ArrayJob: r.ArrayJob.jobID(), ArrayTask: -1, ArrayTasks: string(r.ArrayTasks),
		HetJob: r.HetJob.jobID(), Name: string(r.Name), Comment: string(r.Comment), AdminComment: string(r.AdminComment),
		User: string(r.User), UID: r.UID.uint32(), Account: r.Account.known(), Partition: string(r.Partition), QOS: r.QOS.known(),
		State: ParseJobState(r.State...), Reason: string(r.Reason), Priority: r.Priority.uint32(),
		TimeLimit: limitFromMinutes(r.TimeLimit), Submit: timeFromUnix(r.Submit.or(0)), Eligible: timeFromUnix(r.Eligible.or(0)),
		Start: timeFromUnix(r.Start.or(0)), End: timeFromUnix(r.End.or(0)), Suspended: timeFromUnix(r.Suspended.or(0)),
		Deadline: timeFromUnix(r.Deadline.or(0)),
		Requeue:  bool(r.Requeue), Restarts: r.Restarts.bounded(0), NodeList: r.NodeList.known(), NodeCount: r.NodeCount.bounded(0),
		Features: r.Features.known(), Prefer: r.Prefer.known(), GPUFreq: r.TRESFreq.known(), TRESPerNode: r.TRESPerNode.known(), Exit: r.Exit.Exit,
	}
	if j.ID == 0 {
		return Job{}, fmt.Errorf("job_id: want 1 to %d", maxJobID)
	}
	if r.Nice.set && r.Nice.value != NoVal {
		j.Nice = r.Nice.value
	}
	if j.ArrayJob != 0 {
		j.ArrayTask = r.ArrayTask.bounded(-1)
	}
	if j.HetJob != 0 {
		j.HetOffset = r.HetOffset.bounded(0)
	}
	return j, j.readLists(r)
}

// readLists fills what is packed in strings: nodes, TRES, devices.
func (j *Job) readLists(r *jobJSON) error {
	var err error
	if j.Nodes, err = ExpandHostlist(j.NodeList); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	if j.Requested, err = ParseTRES(string(r.TRESReq)); err != nil {
		return fmt.Errorf("tres_req_str: %w", err)
	}
	if j.Allocated, err = ParseTRES(string(r.TRESAlloc)); err != nil {
		return fmt.Errorf("tres_alloc_str: %w", err)
	}
	return j.readDevices(r)
}

func (j *Job) readDevices(r *jobJSON) error {
	if len(r.Gres) == 0 {
		return nil
	}
	nodes := j.Nodes
	if held := string(r.Resources.nodes); held != "" && held != j.NodeList {
		var err error
		if nodes, err = ExpandHostlist(held); err != nil {
			return fmt.Errorf("job_resources.nodes: %w", err)
		}
	}
	if len(r.Gres) != len(nodes) {
		return nil // which node has which devices is not said
	}
	for i, detail := range r.Gres {
		gres, err := ParseGres(detail)
		if err != nil {
			return fmt.Errorf("gres_detail: %w", err)
		}
		j.Gres = append(j.Gres, NodeGres{Node: nodes[i], Gres: gres})
	}
	return nil
}
