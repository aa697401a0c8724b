package slurm

import (
	"fmt"
	"strings"
	"time"
)

// jobColumns are the columns that squeue --Format is asked for, each with what
// scontrol show job calls it where that has it. Texts that users write come last:
// one that held the delimiter could forge but the others of them.
var jobColumns = [...]struct{ column, name string }{
	{"JobID", "JobId"},
	{"ArrayJobID", "ArrayJobId"},
	{"ArrayTaskID", "ArrayTaskId"},
	{"HetJobID", "HetJobId"},
	{"HetJobOffset", "HetJobOffset"},
	{"UserID", "UID"},
	{"UserName", "UserName"},
	{"State", "JobState"},
	{"Reason", "Reason"},
	{"PriorityLong", "Priority"},
	{"Nice", "Nice"},
	{"TimeLimit", "TimeLimit"},
	{"SubmitTime", "SubmitTime"},
	{"EligibleTime", "EligibleTime"},
	{"StartTime", "StartTime"},
	{"EndTime", "EndTime"},
	{"Deadline", "Deadline"},
	{"Requeue", "Requeue"},
	{"RestartCnt", "Restarts"},
	{"Partition", "Partition"},
	{"QOS", "QOS"},
	{"NodeList", "NodeList"},
	{"NumNodes", "NumNodes"},
	{"tres-alloc", "TRES"},
	{"admin_comment", "AdminComment"},
	{"Account", "Account"},
	{"Feature", "Features"},
	{"Prefer", "Prefer"},
	{"tres-freq", "TresFreq"},
	{"tres-per-node", "TresPerNode"},
	{"tres-per-job", "TresPerJob"},
	{"tres-per-socket", "TresPerSocket"},
	{"tres-per-task", "TresPerTask"},
	{"Comment", "Comment"},
	{"Name", "JobName"},
}

// jobFormat asks squeue for all jobColumns: each as wide as it is, and ended by
// the delimiter.
func jobFormat(delimiter string) string {
	var b strings.Builder
	for i, c := range jobColumns {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(c.column + ":0" + delimiter)
	}
	return b.String()
}

// parseJobColumns reads a job from what squeue prints by jobFormat: that job, all
// of an array, or all components of a heterogeneous job. Free text may hold
// newlines. Where it may hold the delimiter, too, or the job stands there twice,
// the answer is ErrAmbiguous.
func parseJobColumns(source string, data []byte, delimiter string, id JobID) (Job, error) {
	cells := strings.Split(string(escapeInvalid(data, false)), delimiter)
	last := len(cells) - 1
	if last%len(jobColumns) != 0 || strings.TrimSpace(cells[last]) != "" {
		msg := fmt.Sprintf("%d fields: want %d for each job", last, len(jobColumns))
		return Job{}, &ParseError{Source: source, Line: 1, Msg: msg, Err: ErrAmbiguous}
	}
	var found map[string]string
	for i := 0; i < last; i += len(jobColumns) {
		if strings.TrimPrefix(cells[i], "\n") != id.String() {
			continue
		}
		if found != nil {
			return Job{}, &ParseError{
				Source: source, Line: 1, Msg: "job " + id.String() + " stands there twice", Err: ErrAmbiguous,
			}
		}
		found = make(map[string]string, len(jobColumns))
		for k, c := range jobColumns {
			found[c.name] = cells[i+k]
		}
	}
	if found == nil {
		return Job{}, fmt.Errorf("%s: %w", source, ErrNotFound)
	}
	job, err := jobFromColumns(found)
	if err != nil {
		return Job{}, &ParseError{Source: source, Line: 1, Msg: "job " + id.String(), Err: err}
	}
	return job, nil
}

// jobFromColumns fills a Job with what squeue prints of it.
func jobFromColumns(v map[string]string) (Job, error) {
	v["JobId"] = strings.TrimPrefix(v["JobId"], "\n")
	v["UserId"] = v["UserName"] + "(" + v["UID"] + ")"
	if isUnset(v["ArrayTaskId"]) {
		delete(v, "ArrayJobId") // squeue gives its own number to a job of no array
	}
	job, err := jobFromText(v, nil, time.UTC)
	t := textFields{values: v}
	job.Prefer, job.GPUFreq, job.TRESPerNode = t.known("Prefer"), t.known("TresFreq"), t.known("TresPerNode")
	job.otherTRES = joinTRES(t.known("TresPerJob"), t.known("TresPerSocket"), t.known("TresPerTask"))
	for name, comment := range map[string]*string{
		"Comment":      &job.Comment,
		"AdminComment": &job.AdminComment,
	} {
		if *comment = v[name]; *comment == "(null)" { // no other word for nothing: these may be anything
			*comment = ""
		}
	}
	return job, err
}
