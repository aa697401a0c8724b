package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
)

// accountingJSON is a job of sacct --json.
type accountingJSON struct {
	Account jsonText `json:"account"`
	Cluster jsonText `json:"cluster"`
	QOS     jsonText `json:"qos"`
	Comment struct {
		Admin jsonText `json:"administrator"`
		Job   jsonText `json:"job"`
	} `json:"comment"`
	Array struct {
		Job  jsonNumber `json:"job_id"`
		Task jsonNumber `json:"task_id"`
	} `json:"array"`
	Het struct {
		Job    jsonNumber `json:"job_id"`
		Offset jsonNumber `json:"job_offset"`
	} `json:"het"`
	Time struct {
		Elapsed   jsonNumber `json:"elapsed"`
		Suspended jsonNumber `json:"suspended"`
		Eligible  jsonNumber `json:"eligible"`
		End       jsonNumber `json:"end"`
		Start     jsonNumber `json:"start"`
		Submit    jsonNumber `json:"submission"`
		Limit     jsonNumber `json:"limit"`
	} `json:"time"`
	Exit      exitJSON   `json:"exit_code"`
	ID        jsonNumber `json:"job_id"`
	Name      jsonText   `json:"name"`
	Nodes     jsonText   `json:"nodes"`
	Partition jsonText   `json:"partition"`
	Restarts  jsonNumber `json:"restart_cnt"`
	State     struct {
		Current jsonWords `json:"current"`
	} `json:"state"`
	Steps []stepJSON `json:"steps"`
	TRES  struct {
		Allocated []tresJSON `json:"allocated"`
		Requested []tresJSON `json:"requested"`
	} `json:"tres"`
	User        jsonText `json:"user"`
	Association struct {
		User jsonText `json:"user"`
	} `json:"association"`
}

type stepJSON struct {
	Step struct {
		ID jsonText `json:"id"` // batch, or 12.batch
	} `json:"step"`
	Time struct {
		Elapsed jsonNumber `json:"elapsed"`
	} `json:"time"`
	TRES struct {
		Consumed struct {
			Average []tresJSON `json:"average"`
		} `json:"consumed"`
	} `json:"tres"`
	Statistics struct {
		Energy struct {
			Consumed jsonNumber `json:"consumed"`
		} `json:"energy"`
	} `json:"statistics"`
}

type tresJSON struct {
	Type  jsonText   `json:"type"`
	Name  jsonText   `json:"name"`
	Count jsonNumber `json:"count"`
}

// ReadAccountingJSON reads sacct --json job by job, with their steps folded in. It is the form to
// use where names and comments matter, for they cannot forge anything in it.
// Slurm 22.05 states return code 0 for every job here; the text form has the
// true one. Visit gets each job, or what is wrong with it, and the line where it
// ends; its error ends the reading and comes back with its place.
func ReadAccountingJSON(
	source string, r io.Reader, visit func(line int, o *AccountingRecord, err error) error,
) (Meta, error) {
	a := newAnswerDecoder(source, r)
	err := a.readAll(map[string]func() error{"jobs": func() error {
		raw, err := a.dec.value()
		if err != nil {
			return err
		}
		var job accountingJSON
		var o AccountingRecord
		if err = json.Unmarshal(raw, &job); err == nil {
			o, err = job.record()
		} else {
			err = wrongTypeError(err)
		}
		line, _ := a.in.position(a.dec.InputOffset())
		return visit(line, &o, err)
	}})
	return a.meta, err
}

// wrongTypeError says which field of a job is of the wrong kind, and which was
// expected.
func wrongTypeError(err error) error {
	var fault *json.UnmarshalTypeError
	if !errors.As(err, &fault) {
		return err
	}
	want := "a number"
	switch fault.Type.Kind() {
	case reflect.Struct, reflect.Map:
		want = "an object"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.String:
		want = "a text"
	case reflect.Bool:
		want = "true or false"
	default:
	}
	if fault.Field == "" {
		return fmt.Errorf("got %s for a job, want %s", fault.Value, want)
	}
	return fmt.Errorf("%s: got %s, want %s", fault.Field, fault.Value, want)
}

func (r *accountingJSON) record() (AccountingRecord, error) {
	o := AccountingRow{AccountingRecord: AccountingRecord{
		ID: r.ID.jobID(), Name: string(r.Name), Cluster: r.Cluster.orEmpty(), User: r.User.orEmpty(),
		Account: r.Account.orEmpty(), QOS: r.QOS.orEmpty(), Partition: string(r.Partition),
		State: ParseJobState(r.State.Current...), Exit: r.Exit.ExitStatus, ExitKnown: true,
		Submit:   TimeFromUnix(r.Time.Submit.orElse(0)),
		Eligible: TimeFromUnix(r.Time.Eligible.orElse(0)), Start: TimeFromUnix(r.Time.Start.orElse(0)),
		End:       TimeFromUnix(r.Time.End.orElse(0)),
		TimeLimit: limitFromMinutes(r.Time.Limit),
		NodeList:  r.Nodes.orEmpty(), Allocated: tresFromJSON(r.TRES.Allocated),
		Requested: tresFromJSON(r.TRES.Requested),
		Restarts:  r.Restarts.boundedOr(0), Comment: string(r.Comment.Job),
		AdminComment: string(r.Comment.Admin),
	}}
	o.elapsed, o.suspended = r.Time.Elapsed.duration(), r.Time.Suspended.duration()
	o.hasNodeList = true
	if o.ID == 0 {
		return AccountingRecord{}, fmt.Errorf("job_id: want 1 to %d", MaxJobID)
	}
	if o.User == "" {
		o.User = r.Association.User.orEmpty()
	}
	o.Ref = JobRef{Job: o.ID, Task: -1}
	if array := r.Array.Job.otherJobID(); array != 0 && r.Array.Task.set {
		o.Ref.Job, o.Ref.Array, o.Ref.Task = array, true, r.Array.Task.boundedOr(-1)
	}
	if het := r.Het.Job.otherJobID(); het != 0 {
		o.Ref.Job, o.Ref.Het, o.Ref.HetOffset = het, true, r.Het.Offset.boundedOr(0)
	}
	for i := range r.Steps {
		o.AddStep(r.Steps[i].row())
	}
	var err error
	if o.Nodes, err = ExpandHostlist(o.NodeList); err != nil {
		return AccountingRecord{}, fmt.Errorf("nodes: %w", err)
	}
	return o.Record(), nil
}

// duration returns a number of seconds, unknown if it isn't stated or can't be.
func (n jsonNumber) duration() duration {
	seconds := n.orElse(-1)
	if seconds < 0 || seconds > maxDays*86400 {
		return duration{}
	}
	return duration{time.Duration(seconds) * time.Second, true}
}

// row returns a step as a record of accounting.
func (s *stepJSON) row() *AccountingRow {
	step := string(s.Step.ID)
	r := &AccountingRow{elapsed: s.Time.Elapsed.duration(), usage: tresFromJSON(s.TRES.Consumed.Average)}
	r.Ref.Step = step[strings.LastIndexByte(step, '.')+1:]
	if joules := float64(s.Statistics.Energy.Consumed.orElse(0)); joules > 0 && !isNoJoules(joules) {
		r.energy = live.Known(joules)
	}
	return r
}

// tresFromJSON builds the same names as ParseTRES; memory comes in MiB.
func tresFromJSON(list []tresJSON) TRES {
	out := TRES{}
	for _, t := range list {
		if !t.Count.set || t.Type == "" {
			continue
		}
		name := string(t.Type)
		if t.Name != "" {
			name += "/" + string(t.Name)
		}
		n := float64(t.Count.orElse(0))
		if name == "mem" || name == "vmem" {
			n *= 1 << 20
		}
		out[name] = n
	}
	return out
}

// String gives 22.05.8.
func (v Version) String() string {
	return fmt.Sprintf("%02d.%02d.%d", v.Major, v.Minor, v.Micro)
}

// AtLeast compares with a release such as 23.02.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// ParseVersion reads "slurm-wlm 22.05.8", "slurm 24.11.0-rc1" or "23.02".
func ParseVersion(text string) (Version, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Version{}, errors.New("no version in the answer")
	}
	release, _, _ := strings.Cut(words[len(words)-1], "-")
	parts := strings.Split(release, ".")
	bad := fmt.Errorf("%q is not a slurm version: want 22.05.8", Printable(text, 60))
	if len(parts) == 2 {
		parts = append(parts, "0")
	}
	if len(parts) != 3 {
		return Version{}, bad
	}
	major, e1 := parseSmallNumber(parts[0])
	minor, e2 := parseSmallNumber(parts[1])
	micro, e3 := parseSmallNumber(parts[2])
	if errors.Join(e1, e2, e3) != nil {
		return Version{}, bad
	}
	return Version{Major: major, Minor: minor, Micro: micro}, nil
}
