package slurm

import (
	"encoding/json"
	"fmt"
	"io"
)

// jobJSON is a job of squeue --json. Fields that moved between versions appear
// in each of their forms; unknown ones are ignored.
type jobJSON struct {
	Account      jsonText      `json:"account"`
	AdminComment jsonText      `json:"admin_comment"`
	ArrayJob     jsonNumber    `json:"array_job_id"`
	ArrayTask    jsonNumber    `json:"array_task_id"`
	ArrayTasks   jsonText      `json:"array_task_string"`
	Comment      jsonText      `json:"comment"`
	Deadline     jsonNumber    `json:"deadline"`
	Eligible     jsonNumber    `json:"eligible_time"`
	End          jsonNumber    `json:"end_time"`
	Exit         exitJSON      `json:"exit_code"`
	Features     jsonText      `json:"features"`
	Gres         jsonWords     `json:"gres_detail"`
	HetJob       jsonNumber    `json:"het_job_id"`
	HetOffset    jsonNumber    `json:"het_job_offset"`
	ID           jsonNumber    `json:"job_id"`
	Resources    resourcesJSON `json:"job_resources"`
	State        jsonWords     `json:"job_state"`
	Name         jsonText      `json:"name"`
	Nice         jsonNumber    `json:"nice"`
	NodeCount    jsonNumber    `json:"node_count"`
	NodeList     jsonText      `json:"nodes"`
	Partition    jsonText      `json:"partition"`
	Prefer       jsonText      `json:"prefer"`
	Priority     jsonNumber    `json:"priority"`
	QOS          jsonText      `json:"qos"`
	Reason       jsonText      `json:"state_reason"`
	Requeue      jsonFlag      `json:"requeue"`
	Restarts     jsonNumber    `json:"restart_cnt"`
	Start        jsonNumber    `json:"start_time"`
	Submit       jsonNumber    `json:"submit_time"`
	Suspended    jsonNumber    `json:"suspend_time"`
	TimeLimit    jsonNumber    `json:"time_limit"`
	TRESAlloc    jsonText      `json:"tres_alloc_str"`
	TRESFreq     jsonText      `json:"tres_freq"`
	TRESPerJob   jsonText      `json:"tres_per_job"`
	TRESPerNode  jsonText      `json:"tres_per_node"`
	TRESPerSock  jsonText      `json:"tres_per_socket"`
	TRESPerTask  jsonText      `json:"tres_per_task"`
	TRESReq      jsonText      `json:"tres_req_str"`
	UID          jsonNumber    `json:"user_id"`
	User         jsonText      `json:"user_name"`
}

// exitJSON is a wait status (22.05) or an object with return_code and signal (23.02 on).
type exitJSON struct{ ExitStatus }

// UnmarshalJSON implements json.Unmarshaler.
func (e *exitJSON) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		var n jsonNumber
		if err := n.UnmarshalJSON(b); err != nil {
			return err
		}
		e.ExitStatus = exitFromWait(n.orElse(0))
		return nil
	}
	var object struct {
		Set    *bool
		Number jsonNumber
		Code   jsonNumber `json:"return_code"`
		Signal struct {
			ID    jsonNumber `json:"id"`
			OldID jsonNumber `json:"signal_id"`
		} `json:"signal"`
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return fmt.Errorf("exit code: %w", err)
	}
	if object.Number.set {
		e.ExitStatus = exitFromWait(object.Number.orElse(0))
		return nil
	}
	e.ExitStatus = ExitStatus{
		Code: object.Code.boundedOr(0), Signal: object.Signal.ID.boundedOr(object.Signal.OldID.orElse(0)),
	}
	return nil
}

// resourcesJSON gives the node names in the order of gres_detail: a hostlist
// (22.05 to 24.05) or an object with list (24.11 on). The rest has a record for
// each core of each node, and is passed over.
type resourcesJSON struct{ nodes jsonText }

// readJSON implements streamUnmarshaler.
func (r *resourcesJSON) readJSON(from jsonReader) error { return r.readMember(from, "nodes") }

// readMember reads the node names, or an object that has them as its member.
func (r *resourcesJSON) readMember(from jsonReader, name string) error {
	if from.PeekKind() != '{' {
		return from.SkipValue() //nolint:wrapcheck // the walk adds the place
	}
	return from.readObject(func(found []byte) any {
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

// readJSON implements streamUnmarshaler.
func (h hostsJSON) readJSON(from jsonReader) error { return h.readMember(from, "list") }

// ScanJobs reads the answer of squeue --json, which need not fit in memory: each job
// is given as soon as it is read, and is the callee's for the call only; its texts,
// lists and maps may be kept, and aren't changed: jobs share what they have in common. Bytes that are not
// UTF-8 are kept as \xNN. A record that cannot be read is passed over and counted in Meta.Unread. An answer
// that breaks off or turns into something else is a *ParseError after the jobs before that, so what they
// change must wait for the end. An error of each ends it and comes back as it is.
func ScanJobs(source string, r io.Reader, each func(*Job) error) (Meta, error) {
	a := newAnswerDecoder(source, r)
	var raw jobJSON
	var job Job
	var refused error
	common := interner{texts: make(map[string]string), tres: make(map[string]TRES)}
	named := fieldPointers(&raw)
	err := a.readAll(map[string]func() error{"jobs": func() error {
		raw = jobJSON{}
		err := a.dec.readObject(func(name []byte) any { return named[string(name)] })
		if err == nil {
			if job, err = raw.job(&common); err != nil {
				err = unusableError{err}
			}
		}
		switch {
		case isUnusable(err):
			name := ""
			if id := raw.ID.jobID(); id != 0 {
				name = id.String()
			}
			a.meta.Unread.add(name, a.errorAt("job "+name, err).Error())
			return nil
		case err != nil:
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

// interner is what the jobs of a list have in common: of very many there are few users, partitions and sizes.
// It grows to a bound.
type interner struct {
	texts map[string]string
	tres  map[string]TRES
}

const maxShared = 10_000 // of each

// text is a text that jobs share.
func (c *interner) text(s *string) {
	if shared, ok := c.texts[*s]; ok {
		*s = shared
	} else if len(c.texts) < maxShared {
		c.texts[*s] = *s
	}
}

// parseTRES is ParseTRES, once for each text.
func (c *interner) parseTRES(text string) (TRES, error) {
	if out, ok := c.tres[text]; ok {
		return out, nil
	}
	out, err := ParseTRES(text)
	if err == nil && len(c.tres) < maxShared {
		c.tres[text] = out
	}
	return out, err
}

func (r *jobJSON) job(c *interner) (Job, error) {
	j := Job{
		ID: r.ID.jobID(), ArrayJob: r.ArrayJob.otherJobID(), ArrayTask: -1, ArrayTasks: string(r.ArrayTasks),
		HetJob: r.HetJob.otherJobID(), Name: string(r.Name), Comment: string(r.Comment),
		AdminComment: string(r.AdminComment),
		User:         string(r.User), UID: r.UID.uint32(), Account: r.Account.orEmpty(),
		Partition: string(r.Partition), QOS: r.QOS.orEmpty(),
		State: ParseJobState(r.State...), Reason: string(r.Reason), Priority: r.Priority.uint32(),
		TimeLimit: limitFromMinutes(r.TimeLimit), Submit: TimeFromUnix(r.Submit.orElse(0)),
		Eligible: TimeFromUnix(r.Eligible.orElse(0)),
		Start:    TimeFromUnix(r.Start.orElse(0)), End: TimeFromUnix(r.End.orElse(0)),
		Suspended: TimeFromUnix(r.Suspended.orElse(0)),
		Deadline:  TimeFromUnix(r.Deadline.orElse(0)),
		Requeue:   bool(r.Requeue), Restarts: r.Restarts.boundedOr(0), NodeList: r.NodeList.orEmpty(),
		NodeCount: r.NodeCount.boundedOr(0),
		Features:  r.Features.orEmpty(), Prefer: r.Prefer.orEmpty(), GPUFreq: r.TRESFreq.orEmpty(),
		TRESPerNode: r.TRESPerNode.orEmpty(), Exit: r.Exit.ExitStatus,
	}
	if j.ID == 0 {
		return Job{}, fmt.Errorf("job_id: want 1 to %d", MaxJobID)
	}
	if r.Nice.set && r.Nice.value != NoVal {
		j.Nice = r.Nice.value
	}
	if j.ArrayJob != 0 {
		j.ArrayTask = r.ArrayTask.boundedOr(-1)
	}
	if j.HetJob != 0 {
		j.HetOffset = r.HetOffset.boundedOr(0)
	}
	j.otherTRES = joinTRES(r.TRESPerJob.orEmpty(), r.TRESPerSock.orEmpty(), r.TRESPerTask.orEmpty())
	for _, s := range []*string{
		&j.User, &j.Account, &j.Partition, &j.QOS, &j.Reason, &j.Features, &j.Prefer, &j.GPUFreq, &j.TRESPerNode,
	} {
		c.text(s)
	}
	return j, j.readPackedFields(r, c)
}

// readPackedFields fills what is packed in strings: nodes, TRES, devices.
func (j *Job) readPackedFields(r *jobJSON, c *interner) error {
	var err error
	if j.Nodes, err = ExpandHostlist(j.NodeList); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	if j.Requested, err = c.parseTRES(string(r.TRESReq)); err != nil {
		return fmt.Errorf("tres_req_str: %w", err)
	}
	if j.Allocated, err = c.parseTRES(string(r.TRESAlloc)); err != nil {
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
