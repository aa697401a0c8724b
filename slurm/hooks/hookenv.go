package hooks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Hook is which of Slurm's hooks calls.
type Hook string

// The hooks of slurmd.
const (
	Prolog Hook = "prolog"
	Epilog Hook = "epilog"
)

// Env is the environment of a Prolog or Epilog, checked. There are no array
// ids in it: each task comes with its own job number.
type Env struct {
	Kind        Hook
	Cluster     string
	Job         slurm.JobID
	HetJob      slurm.JobID // 0 when not heterogeneous; each component has a Prolog of its own
	Node        string
	Nodes       []string // all nodes of the job
	UID         uint32
	GID         uint32
	User        string
	Partition   string
	Account     string
	Comment     string // hostile text, cut at MaxText
	Constraints string
	GPUs        []int // positions in the node's gres.conf list
	GPUsKnown   bool  // false for a job without GPUs, and in an Epilog after slurmctld was away
	// Of whole GPUs, in the order of GPUs, where CUDA_VISIBLE_DEVICES has them (from
	// Slurm 26.05 on).
	UUIDs    []string
	MIG      []string // parts of GPUs in CUDA_VISIBLE_DEVICES
	Conf     string   // path of the slurm.conf that slurmd reads
	Restarts int      // the Epilog of a requeued run counts one more than its Prolog
	// Start and End are of the job, from 23.02 on: in a Prolog End is when its limit is
	// over, in an Epilog when it ended, with the Epilogs still to come.
	Start, End time.Time
	Exit       slurm.ExitStatus
	Warnings   []string // fields that did not read; they are left empty
}

const (
	maxEnvironment = 4 << 20
	maxBadFields   = 16 // that are warned of
)

// ParseEnv reads the environment of a hook as os.Environ gives it. Without
// a job number and a node's name there is nothing to act on: that is an error.
// Any other field that does not read is left empty and named in Warnings.
func ParseEnv(kind Hook, environ []string) (Env, error) {
	v, err := hookVariables(environ)
	if err != nil {
		return Env{}, err
	}
	if kind != Prolog && kind != Epilog {
		return Env{}, fmt.Errorf("hook %q: %w", slurm.Printable(string(kind), 40), slurm.ErrInvalid)
	}
	if context := v["SLURM_SCRIPT_CONTEXT"]; context != "" && !strings.HasPrefix(context, string(kind)+"_") {
		return Env{}, fmt.Errorf("called as %s, but SLURM_SCRIPT_CONTEXT is %q: %w", kind,
			slurm.Printable(context, 40), slurm.ErrInvalid)
	}
	e := Env{Kind: kind, Node: v["SLURMD_NODENAME"]}
	if e.Job, err = slurm.ParseJobID(v["SLURM_JOB_ID"]); err != nil {
		return Env{}, fmt.Errorf("SLURM_JOB_ID: %w", err)
	}
	if err = slurm.ValidNode(e.Node); err != nil {
		return Env{}, fmt.Errorf("SLURMD_NODENAME: %w", err)
	}
	e.read(v)
	e.readDevices(v)
	return e, nil
}

// hookVariables keeps Slurm's variables. The first of two with one name counts, as getenv has it.
func hookVariables(environ []string) (map[string]string, error) {
	out := map[string]string{}
	total := 0
	for _, line := range environ {
		if total += len(line); total > maxEnvironment {
			return nil, fmt.Errorf("environment of more than %d bytes: %w", maxEnvironment, slurm.ErrInvalid)
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !strings.HasPrefix(key, "SLURM") && key != "CUDA_VISIBLE_DEVICES" {
			continue
		}
		if _, seen := out[key]; !seen {
			out[key] = value
		}
	}
	return out, nil
}

func (e *Env) warn(key string, err error) {
	if err != nil && len(e.Warnings) < maxBadFields {
		e.Warnings = append(e.Warnings, key+": "+slurm.Printable(err.Error(), 200))
	}
}

func (e *Env) read(v map[string]string) {
	short := func(key string) string {
		s := v[key]
		if len(s) > 256 {
			e.warn(key, fmt.Errorf("%d bytes, want at most 256", len(s)))
			return ""
		}
		return slurm.ValidUTF8(s)
	}
	unsigned := func(key string) uint32 {
		if v[key] == "" {
			return 0
		}
		n, err := strconv.ParseUint(v[key], 10, 32)
		e.warn(key, err)
		return uint32(n)
	}
	e.Cluster, e.User = short("SLURM_CLUSTER_NAME"), short("SLURM_JOB_USER")
	e.Partition, e.Account = short("SLURM_JOB_PARTITION"), short("SLURM_JOB_ACCOUNT")
	e.Constraints = short("SLURM_JOB_CONSTRAINTS")
	e.UID, e.GID = unsigned("SLURM_JOB_UID"), unsigned("SLURM_JOB_GID")
	e.Restarts = int(min(unsigned("SLURM_JOB_RESTART_COUNT"), 1<<30))
	e.Start = slurm.TimeFromUnix(int64(unsigned("SLURM_JOB_START_TIME")))
	e.End = slurm.TimeFromUnix(int64(unsigned("SLURM_JOB_END_TIME")))
	if conf := v["SLURM_CONF"]; strings.HasPrefix(conf, "/") && len(conf) <= slurm.MaxText {
		e.Conf = conf
	}
	e.Comment = slurm.ValidUTF8(v["SLURM_JOB_COMMENT"][:min(len(v["SLURM_JOB_COMMENT"]), slurm.MaxText)])
	if id := v["SLURM_HET_JOB_ID"]; id != "" {
		var err error
		e.HetJob, err = slurm.ParseJobID(id)
		e.warn("SLURM_HET_JOB_ID", err)
	}
	list := v["SLURM_JOB_NODELIST"]
	if list == "" {
		list = v["SLURM_NODELIST"] // before 23.11
	}
	var err error
	e.Nodes, err = slurm.ExpandHostlist(list)
	e.warn("SLURM_NODELIST", err)
	e.Exit, err = slurm.ParseExit(v["SLURM_JOB_EXIT_CODE2"])
	e.warn("SLURM_JOB_EXIT_CODE2", err)
}

// readDevices reads "0,2-3". A list that does not read is not known, rather than half known.
func (e *Env) readDevices(v map[string]string) {
	list, ok := v["SLURM_JOB_GPUS"]
	if ok && list != "" {
		gpus, err := slurm.ParseIndices(list)
		switch {
		case err != nil:
			e.warn("SLURM_JOB_GPUS", err)
		case gpus[len(gpus)-1] >= slurm.MaxGresIndex:
			e.warn("SLURM_JOB_GPUS",
				fmt.Errorf("position %d, want below %d", gpus[len(gpus)-1], slurm.MaxGresIndex))
		default:
			e.GPUs, e.GPUsKnown = slices.Compact(gpus), true
		}
	}
	for part := range strings.SplitSeq(v["CUDA_VISIBLE_DEVICES"], ",") {
		switch {
		case !isGPUWord(part) || len(e.MIG)+len(e.UUIDs) >= slurm.MaxGresIndex:
		case strings.HasPrefix(part, "MIG-"):
			e.MIG = append(e.MIG, part)
		case strings.HasPrefix(part, "GPU-"):
			e.UUIDs = append(e.UUIDs, part)
		}
	}
}

// isGPUWord reports whether a word may be the UUID of a GPU or of a part of one.
func isGPUWord(word string) bool {
	const runes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"
	return len(word) <= 128 && strings.Trim(word, runes) == ""
}

// Event gives what goes on the wire; the hook stops waiting at deadline.
func (e *Env) Event(deadline time.Time) Event {
	out := Event{
		Version: ProtocolVersion, Kind: e.Kind, Cluster: Hex(e.Cluster), Job: e.Job, HetJob: e.HetJob,
		Node: e.Node, UID: e.UID,
		User: Hex(e.User), Partition: Hex(e.Partition),
		Comment: Hex(e.Comment[:min(len(e.Comment), slurm.MaxText)]), GPUs: e.GPUs, GPUsKnown: e.GPUsKnown,
		Restarts: e.Restarts, Code: e.Exit.Code, Signal: e.Exit.Signal, Conf: Hex(e.Conf),
	}
	for _, id := range e.UUIDs {
		out.UUIDs = append(out.UUIDs, Hex(id))
	}
	for _, id := range e.MIG {
		out.MIG = append(out.MIG, Hex(id))
	}
	if !deadline.IsZero() {
		out.Deadline = deadline.UnixMilli()
	}
	if e.Kind == Epilog && !e.End.IsZero() { // a Prolog is told when it has to
		out.End = e.End.Unix()
	}
	return out
}
