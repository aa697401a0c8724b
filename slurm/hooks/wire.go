package hooks

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// ProtocolVersion is the version of the hooks' wire format.
const ProtocolVersion = 1

// The bounds of a hook's message, in bytes.
const (
	MaxMessage = 512 << 10 // a whole request
	MaxScript  = 200 << 10 // the script of a submission
)

// Hex is text of a user: any bytes at all, hexadecimal on the wire, so that it
// needs no quoting anywhere.
type Hex string

// MarshalJSON implements json.Marshaler.
func (h Hex) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2*len(h)+2)
	out = append(out, '"')
	out = hex.AppendEncode(out, []byte(h))
	return append(out, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hex) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("hex text: %w", err)
	}
	raw, err := hex.DecodeString(s)
	if err != nil {
		return fmt.Errorf("hex text: %w", err)
	}
	*h = Hex(raw)
	return nil
}

// Submission is what job_submit.lua says about a job that is being submitted.
// It has no id yet. An array is one submission, each heterogeneous component is one.
type Submission struct {
	Version     int    `json:"v"`
	Kind        string `json:"kind"` // "batch" or "interactive"
	UID         uint32 `json:"uid"`
	Name        Hex    `json:"name_hex,omitempty"`
	Partition   Hex    `json:"partition_hex,omitempty"`
	Account     Hex    `json:"account_hex,omitempty"`
	QOS         Hex    `json:"qos_hex,omitempty"`
	Comment     Hex    `json:"comment_hex,omitempty"`
	Admin       Hex    `json:"admin_comment_hex,omitempty"`
	Features    Hex    `json:"features_hex,omitempty"`
	Prefer      Hex    `json:"prefer_hex,omitempty"`
	TRESPerNode Hex    `json:"tres_per_node_hex,omitempty"`
	TRESPerJob  Hex    `json:"tres_per_job_hex,omitempty"`
	TRESPerTask Hex    `json:"tres_per_task_hex,omitempty"`
	TRESPerSock Hex    `json:"tres_per_socket_hex,omitempty"`
	TRESFreq    Hex    `json:"tres_freq_hex,omitempty"` // the user's own --gpu-freq
	Array       Hex    `json:"array_inx_hex,omitempty"`
	WorkDir     Hex    `json:"work_dir_hex,omitempty"`
	Script      Hex    `json:"script_hex,omitempty"`
	TimeLimit   uint32 `json:"time_limit_min,omitempty"`
	MinNodes    uint32 `json:"min_nodes,omitempty"`
	NumTasks    uint32 `json:"num_tasks,omitempty"`
	CPUsPerTask uint32 `json:"cpus_per_task,omitempty"`
	BeginTime   int64  `json:"begin_unix_s,omitempty"`
	Held        bool   `json:"held,omitempty"`
	// Tied is that it has a dependency, a reservation or a deadline of Slurm's.
	Tied    bool `json:"tied,omitempty"`
	OwnNice bool `json:"own_nice,omitempty"` // the user gave it one
}

// SubmitAnswer is what job_submit.lua may set. Empty fields leave the job as it is.
type SubmitAnswer struct {
	Version      int `json:"v"`
	AdminComment Hex `json:"admin_comment_hex,omitempty"`
	Message      Hex `json:"message_hex,omitempty"` // one line for the user
	// Nice is what a job gets whose user gave it none, if AdminComment, which says so, is set; 0: none.
	Nice int64 `json:"nice,omitempty"`
	// Begin is when a job may begin whose user said nothing of it, in Unix seconds, likewise; 0: at once.
	Begin int64 `json:"begin_unix_s,omitempty"`
}

// Event is what epplan prolog and epplan epilog say.
type Event struct {
	Version   int         `json:"v"`
	Kind      Hook        `json:"kind"`
	Cluster   Hex         `json:"cluster_hex,omitempty"`
	Job       slurm.JobID `json:"job_id"`
	HetJob    slurm.JobID `json:"het_job_id,omitempty"`
	Node      string      `json:"node"`
	UID       uint32      `json:"uid"`
	User      Hex         `json:"user_hex,omitempty"`
	Partition Hex         `json:"partition_hex,omitempty"`
	Comment   Hex         `json:"comment_hex,omitempty"`
	GPUs      []int       `json:"gpus,omitempty"`          // positions in the node's gres.conf list
	GPUsKnown bool        `json:"gpus_known"`              // false: Slurm did not say
	UUIDs     []Hex       `json:"gpu_uuids_hex,omitempty"` // of those GPUs, where Slurm says them
	MIG       []Hex       `json:"mig_hex,omitempty"`       // parts of GPUs
	// Path of slurmd's slurm.conf, with gres.conf beside it.
	Conf     Hex   `json:"slurm_conf_hex,omitempty"`
	Restarts int   `json:"restarts"` // of no use to pair a Prolog with its Epilog
	Code     int   `json:"exit_code,omitempty"`
	Signal   int   `json:"exit_signal,omitempty"`
	Deadline int64 `json:"deadline_unix_ms,omitempty"` // when the hook stops waiting
	// When the job ended, in an Epilog; 0: Slurm did not say, as before 23.02.
	End int64 `json:"end_unix_s,omitempty"`
}

// Answer says what was done. A hook ends with status 0 whatever it holds.
type Answer struct {
	Version int  `json:"v"`
	Applied bool `json:"applied"`
	Run     Hex  `json:"run_id_hex,omitempty"`
	Reason  Hex  `json:"reason_hex,omitempty"`
}

// DecodeSubmission reads and checks a submission.
func DecodeSubmission(r io.Reader) (Submission, error) {
	var s Submission
	if err := decodeWire(r, &s); err != nil {
		return Submission{}, fmt.Errorf("submission: %w", err)
	}
	texts := []Hex{
		s.Name, s.Partition, s.Account, s.QOS, s.Comment, s.Admin, s.Features, s.Prefer, s.TRESPerNode,
		s.TRESPerJob, s.TRESPerTask, s.TRESPerSock, s.TRESFreq, s.Array, s.WorkDir,
	}
	for _, t := range texts {
		if len(t) > slurm.MaxText {
			return Submission{}, fmt.Errorf("submission: text of %d bytes: want at most %d: %w", len(t),
				slurm.MaxText, slurm.ErrInvalid)
		}
	}
	switch {
	case s.Version != ProtocolVersion:
		return Submission{}, fmt.Errorf("submission: version %d: want %d: %w", s.Version,
			ProtocolVersion, slurm.ErrInvalid)
	case s.Kind != "batch" && s.Kind != "interactive":
		return Submission{}, fmt.Errorf("submission: kind %q: want batch or interactive: %w",
			slurm.Printable(s.Kind, 40), slurm.ErrInvalid)
	case len(s.Script) > MaxScript:
		return Submission{}, fmt.Errorf("submission: script of %d bytes: want at most %d: %w", len(s.Script),
			MaxScript, slurm.ErrInvalid)
	}
	return s, nil
}

// DecodeEvent reads and checks what a Prolog or Epilog says.
func DecodeEvent(r io.Reader) (Event, error) {
	var e Event
	if err := decodeWire(r, &e); err != nil {
		return Event{}, fmt.Errorf("hook event: %w", err)
	}
	return e, e.Validate()
}

// Validate checks every field that selects a job, a node or a device.
func (e *Event) Validate() error {
	if e.Version != ProtocolVersion || e.Kind != Prolog && e.Kind != Epilog {
		return fmt.Errorf("hook event: version %d, kind %q: %w", e.Version,
			slurm.Printable(string(e.Kind), 40), slurm.ErrInvalid)
	}
	if err := errors.Join(slurm.ValidJob(e.Job), slurm.ValidNode(e.Node)); err != nil {
		return fmt.Errorf("hook event: %w", err)
	}
	if len(e.GPUs) > slurm.MaxGresIndex || len(e.MIG) > slurm.MaxGresIndex ||
		len(e.UUIDs) > slurm.MaxGresIndex ||
		len(e.Comment) > slurm.MaxText || len(e.Conf) > slurm.MaxText {
		return fmt.Errorf("hook event: a field is too large: %w", slurm.ErrInvalid)
	}
	for _, g := range e.GPUs {
		if g < 0 || g >= slurm.MaxGresIndex {
			return fmt.Errorf("hook event: GPU %d: want 0 to %d: %w", g, slurm.MaxGresIndex-1, slurm.ErrInvalid)
		}
	}
	return nil
}

// decodeWire reads one JSON value of at most MaxMessage bytes and nothing behind it.
func decodeWire(r io.Reader, into any) error {
	data, err := io.ReadAll(io.LimitReader(r, MaxMessage+1))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if len(data) > MaxMessage {
		return fmt.Errorf("more than %d bytes: %w", MaxMessage, slurm.ErrInvalid)
	}
	if err := json.Unmarshal(bytes.TrimSpace(data), into); err != nil {
		return fmt.Errorf("%w: %w", slurm.ErrInvalid, err)
	}
	return nil
}

// Limit gives the time limit that the user asked for.
func (s *Submission) Limit() live.Limit {
	if s.TimeLimit == 0 || s.TimeLimit == slurm.NoVal {
		return live.Limit{}
	}
	if s.TimeLimit == slurm.Infinite || s.TimeLimit > math.MaxInt32 {
		return live.Unlimited()
	}
	return slurm.LimitOfMinutes(int64(s.TimeLimit))
}

// WantsGPU says whether any of the requests names gpu, shard or mps.
func (s *Submission) WantsGPU() bool {
	for _, t := range []Hex{s.TRESPerNode, s.TRESPerJob, s.TRESPerTask, s.TRESPerSock} {
		list, err := slurm.ParseGres(string(t))
		if err != nil {
			continue
		}
		for _, g := range list {
			name := strings.TrimPrefix(g.Name, "gres/")
			if g.Count > 0 && (name == "gpu" || name == "shard" || name == "mps") {
				return true
			}
		}
	}
	return false
}
