package slurm

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
)

// jobLines are the names that the lines of scontrol show job start with, in
// the order in which Slurm prints them (22.05 to 25.11), up to the first line
// that a user fills with text (Command). Everything that ParseJobText believes
// stands in these lines.
var jobLines = []string{
	"HetJobIdSet", "UserId", "Priority", "JobState", "Requeue", "DerivedExitCode", "RunTime", "SubmitTime",
	"AccrueTime", "StartTime", "PreemptEligibleTime", "PreemptTime", "SuspendTime", "LastSchedEval",
	"Partition", "ReqNodeList", "NodeList",
	"BatchHost", "StepMgrEnabled", "NumNodes", "TRES", "ReqTRES", "AllocTRES", "Socks/Node", "JOB_GRES",
	"Nodes", "MinCPUsNode", "Features",
	"Reservation", "OverSubscribe", "Command",
}

var jobLineOrder = func() map[string]int {
	out := map[string]int{}
	for i, name := range jobLines {
		out[name] = i
	}
	return out
}()

// requiredLines stand in every record.
var requiredLines = []string{
	"UserId", "Priority", "JobState", "RunTime", "SubmitTime", "StartTime", "Partition",
	"NumNodes", "Command",
}

// ParseJobText reads one job from scontrol show job -d ID. The name, the
// comment and other text may hold newlines and forge lines, even whole records;
// so a record counts only when its number is id, it is the only one with it,
// and every line stands once and in its order. What cannot be told apart is
// ErrAmbiguous. Comment, AdminComment, Prefer and paths are left empty: a working
// folder with a newline could forge them. JSON has them.
func ParseJobText(source string, data []byte, id JobID, zone *time.Location) (Job, error) {
	records, err := splitRecords(source, data, "JobId")
	if err != nil {
		return Job{}, err
	}
	var job Job
	found := 0
	for _, r := range records {
		head := splitFields(r.first)
		if len(head) == 0 || head[0][1] != id.String() {
			continue
		}
		if found++; found > 1 {
			return Job{}, &ParseError{
				Source: source, Line: r.line, Msg: "job " + id.String() + " stands there twice",
				Err: ErrAmbiguous,
			}
		}
		if job, err = r.job(source, zone); err != nil {
			return Job{}, err
		}
	}
	if found == 0 {
		return Job{}, fmt.Errorf("%s: job %s: %w", source, id, ErrNotFound)
	}
	return job, nil
}

// job reads a record whose first line is "JobId=… JobName=…".
func (r scontrolRecord) job(source string, zone *time.Location) (Job, error) {
	head, name, ok := strings.Cut(r.first, " JobName=")
	if !ok {
		return Job{}, &ParseError{Source: source, Line: r.line, Msg: "no JobName"}
	}
	values, devices, nameLines, err := r.orderedLines(source)
	if err != nil {
		return Job{}, err
	}
	for _, p := range splitFields(head) {
		values[p[0]] = p[1]
	}
	values["JobName"] = strings.Join(append([]string{name}, nameLines...), "\n")
	job, err := jobFromText(values, devices, zone)
	if err != nil {
		return Job{}, &ParseError{Source: source, Line: r.line, Msg: "job " + values["JobId"], Err: err}
	}
	return job, nil
}

// orderedLines reads the lines up to Command, and refuses what free text could have put in.
func (r scontrolRecord) orderedLines(
	source string,
) (values map[string]string, devices [][2]string, name []string, err error) {
	values = map[string]string{}
	seen := map[string]bool{}
	last, previous := -1, ""
	for i, line := range r.lines {
		key, indent := leadingName(line)
		order, known := jobLineOrder[key]
		if !known || indent != lineIndent(key) {
			if last < 0 {
				name = append(name, line)
			}
			continue
		}
		if seen[key] && (key != "Nodes" || previous != "Nodes") || order < last {
			return nil, nil, nil, &ParseError{
				Source: source, Line: r.line + i + 1, Msg: key + " stands there twice or out of order",
				Err: ErrAmbiguous,
			}
		}
		seen[key], last, previous = true, order, key
		pairs := splitFields(line)
		if key == "Nodes" {
			devices = append(devices, nodeDevices(pairs))
			continue
		}
		if key != "Command" { // a user's text
			if twice := addFields(values, pairs); twice != "" {
				return nil, nil, nil, &ParseError{
					Source: source, Line: r.line + i + 1, Msg: twice + " stands there twice",
					Err: ErrAmbiguous,
				}
			}
		}
	}
	for _, key := range requiredLines {
		if !seen[key] {
			return nil, nil, nil, &ParseError{
				Source: source, Line: r.line, Msg: "no line " + key, Err: ErrAmbiguous,
			}
		}
	}
	return values, devices, name, nil
}

// addFields names the first field that is there already: where Slurm does not
// check accounts, an account is any text.
func addFields(values map[string]string, pairs [][2]string) string {
	for _, p := range pairs {
		if _, there := values[p[0]]; there {
			return p[0]
		}
		values[p[0]] = p[1]
	}
	return ""
}

// lineIndent returns how far Slurm indents a line.
func lineIndent(key string) int {
	if key == "Nodes" {
		return 5
	}
	return 3
}

// nodeDevices reads "Nodes=n[1-2] CPU_IDs=3 Mem=100 GRES=gpu:h200:1(IDX:6)".
func nodeDevices(pairs [][2]string) [2]string {
	var out [2]string
	for _, p := range pairs {
		switch p[0] {
		case "Nodes":
			out[0] = p[1]
		case "GRES":
			out[1] = p[1]
		}
	}
	return out
}

// jobFromText fills a Job from trusted fields, gathering what does not read.
func jobFromText(v map[string]string, devices [][2]string, zone *time.Location) (Job, error) {
	t := textFields{values: v, zone: zone}
	user, uid, _ := strings.Cut(v["UserId"], "(")
	j := Job{
		ID: t.jobID("JobId"), ArrayJob: t.jobID("ArrayJobId"), ArrayTask: -1, HetJob: t.jobID("HetJobId"),
		HetOffset: t.integer("HetJobOffset"),
		Name:      v["JobName"], User: user, Account: t.known("Account"), Partition: v["Partition"],
		QOS:   t.known("QOS"),
		State: ParseJobState(v["JobState"]), Reason: v["Reason"], Nice: int64(t.integer("Nice")),
		TimeLimit: t.limit("TimeLimit"),
		Submit:    t.time("SubmitTime"), Eligible: t.time("EligibleTime"), Start: t.time("StartTime"),
		End: t.time("EndTime"), Suspended: t.time("SuspendTime"),
		Deadline: t.time("Deadline"),
		Requeue:  v["Requeue"] == "1", Restarts: t.integer("Restarts"), NodeList: t.known("NodeList"),
		NodeCount: t.nodeCount(),
		Features:  t.known("Features"), Requested: t.tres("TRES", "ReqTRES"),
		Allocated: t.tres("AllocTRES", ""), Exit: t.exit("ExitCode"),
	}
	j.UID = t.unsigned(strings.TrimSuffix(uid, ")"), "UserId")
	j.Priority = t.unsigned(v["Priority"], "Priority")
	if task := v["ArrayTaskId"]; j.ArrayJob != 0 {
		if n, err := parseSmallNumber(task); err == nil {
			j.ArrayTask = n
		} else {
			j.ArrayTasks = task
		}
	}
	var err error
	if j.Nodes, err = ExpandHostlist(j.NodeList); err != nil {
		t.fail(err)
	}
	if j.NodeList != "" && len(j.Allocated) == 0 && v["AllocTRES"] == "" {
		j.Allocated = j.Requested
	}
	for _, d := range devices {
		names, err := ExpandHostlist(d[0])
		t.fail(err)
		gres, err := ParseGres(d[1])
		t.fail(err)
		for _, name := range names {
			if len(gres) > 0 {
				j.Gres = append(j.Gres, NodeGres{Node: name, Gres: gres})
			}
		}
	}
	return j, t.err
}

// textFields reads typed values and keeps the first problem.
type textFields struct {
	values map[string]string
	zone   *time.Location
	err    error
}

func (t *textFields) fail(err error) {
	if err != nil && t.err == nil {
		t.err = err
	}
}

func (t *textFields) known(key string) string {
	if isUnset(t.values[key]) {
		return ""
	}
	return t.values[key]
}

func (t *textFields) jobID(key string) JobID {
	if t.known(key) == "" && key != "JobId" {
		return 0
	}
	id, err := ParseJobID(t.values[key])
	t.fail(err)
	return id
}

func (t *textFields) integer(key string) int {
	s := t.known(key)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
		t.fail(fmt.Errorf("%s: %q is not a number", key, s))
		return 0
	}
	return int(n)
}

func (t *textFields) unsigned(s, key string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.fail(fmt.Errorf("%s: %q is not a number", key, s))
	}
	return uint32(n)
}

// nodeCount reads "2" and the range "2-4" of a pending job.
func (t *textFields) nodeCount() int {
	low, _, _ := strings.Cut(t.known("NumNodes"), "-")
	n, err := parseSmallNumber(low)
	if err != nil && low != "" {
		t.fail(fmt.Errorf("NumNodes: %w", err))
	}
	return n
}

func (t *textFields) limit(key string) live.Limit {
	l, err := ParseLimit(t.values[key])
	t.fail(err)
	return l
}

func (t *textFields) time(key string) time.Time {
	at, err := ParseTime(t.values[key], t.zone)
	t.fail(err)
	return at
}

func (t *textFields) tres(key, other string) TRES {
	s := t.values[key]
	if s == "" {
		s = t.values[other]
	}
	out, err := ParseTRES(s)
	t.fail(err)
	return out
}

// exit reads "3:0": code and signal.
func (t *textFields) exit(key string) ExitStatus {
	e, err := ParseExit(t.values[key])
	t.fail(err)
	return e
}

// ParseExit reads an exit code as Slurm prints it, code:signal; nothing is 0:0.
func ParseExit(s string) (ExitStatus, error) {
	if s == "" {
		return ExitStatus{}, nil
	}
	code, signal, ok := strings.Cut(s, ":")
	c, err := parseSmallNumber(code)
	g, err2 := parseSmallNumber(signal)
	if !ok || errors.Join(err, err2) != nil {
		return ExitStatus{}, fmt.Errorf("exit code %q: want code:signal", Printable(s, 40))
	}
	return ExitStatus{Code: c, Signal: g}, nil
}
