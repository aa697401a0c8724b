package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Source is what repeats when a job is submitted again: its user's script, or
// its name where the script isn't known. Together with the number of GPUs it is
// a workload.
type Source [12]byte

// SourceOf names a script by its hash, else by the job's name.
func SourceOf(uid uint32, scriptHash, name string) Source {
	kind, what := "script", scriptHash
	if scriptHash == "" {
		kind, what = "name", name
	}
	sum := sha256.Sum256([]byte(strconv.FormatUint(uint64(uid), 10) + "\x00" + kind + "\x00" + what))
	return Source(sum[:len(Source{})])
}

// String returns a source in hexadecimal digits.
func (s Source) String() string { return hex.EncodeToString(s[:]) }

func parseSource(text string) (Source, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(Source{}) {
		return Source{}, false
	}
	return Source(raw), true
}

// Workload returns the key of a source on a number of GPUs.
func (s Source) Workload(gpus int) string { return s.String() + "x" + strconv.Itoa(gpus) }

// Job is what is known of a job, in few bytes: there may be hundreds of thousands. It
// is never changed, only replaced.
type Job struct {
	Source             Source
	state              stateCode
	completing         bool
	Scripted           bool // the source is a script's
	OwnFreq            bool // the user's own --gpu-freq
	UID                uint32
	GPUs               uint32 // on all nodes; 0: not known
	Nodes              uint32
	nice               int32
	Submitted          int64 // Unix seconds; 0: not known
	Limit              live.Limit
	User, Account      unique.Handle[string]
	Partition, Comment unique.Handle[string]
	about              unique.Handle[about]
	rare               *rare // nil: it has nothing of that
	Name               string
	Token              string
}

// rare is what most jobs don't have, since most of many jobs wait.
type rare struct {
	nodeList         string
	arrayTasks       string
	arrayJob, hetJob slurm.JobID
	arrayTask        int32
	hetOffset        int32
	restarts         uint32
	deadline         int64 // Unix seconds; 0: none
	start            int64 // Unix seconds; of a pending job when it is planned to start
	end              int64 // Unix seconds, of a job that ended, or whose Epilogs run; 0: it didn't
	suspended        int64 // Unix seconds, when it was suspended or went on last; 0: never
}

// noArray is a job that is rare in nothing.
var noArray = rare{arrayTask: -1}

// rareParts returns what is rare about a job.
func (job *Job) rareParts() *rare {
	if job.rare == nil {
		return &noArray
	}
	return job.rare
}

// Restarts returns how often the job was queued anew.
func (job *Job) Restarts() uint32 { return job.rareParts().restarts }

// SharesGPUs reports whether the job has parts of GPUs, or asks for some.
func (job *Job) SharesGPUs() bool {
	return job.about != (unique.Handle[about]{}) && job.about.Value().sharesGPUs // a Described one has none
}

// about is what many jobs have in common. Most of it is for those who ask for
// the queue.
type about struct {
	qos, reason, features, prefer, gpuFreq, perNode string
	requested, allocated                            string // TRES
	sharesGPUs                                      bool
}

// MaxText is how many bytes are kept of a name: longer ones are cut.
const MaxText = 256

// ReasonOwnFreq is the reason in the record of a submission, as in that of a decision,
// whose user asked for clocks of their own.
const ReasonOwnFreq = "the user asked for clocks with --gpu-freq: hands off"

// stateCode is a job's base state in a byte.
type stateCode uint8

// jobStates are Slurm's states by code; 0 is any other.
var jobStates = []slurm.State{
	slurm.UnknownJob, slurm.Pending, slurm.Running, slurm.Suspended, slurm.Completing, slurm.Configuring,
	slurm.Completed,
	slurm.Cancelled, slurm.Failed, slurm.Timeout, slurm.NodeFail, slurm.Preempted, slurm.BootFail,
	slurm.Deadline,
	slurm.OutOfMemory, slurm.Requeued, slurm.Revoked, slurm.LaunchFailed,
}

func codeOf(s slurm.State) stateCode {
	return stateCode(max(0, slices.Index(jobStates, s))) //nolint:gosec // fewer than 256
}

func (c stateCode) state() slurm.State { return jobStates[c] }

// stateOf returns a job's state as it is kept. Old versions say COMPLETING, and not
// how the job ended, as long as it is.
func (job *Job) stateOf() slurm.JobState {
	s := slurm.JobState{Base: job.state.state()}
	if job.completing {
		s.Flags = []slurm.State{slurm.Completing}
	}
	return s
}

// isUnchanged reports whether a job is as it is to be kept.
func (job *Job) isUnchanged(now *Job, r rare) bool {
	a := *job
	a.rare = now.rare
	return a == *now && *job.rareParts() == r
}

// ownedCopy returns a copy that keeps nothing else alive, and shares its texts with what
// was known of the job before.
func (job *Job) ownedCopy(r rare, before *Job) *Job {
	if before == nil {
		before = &Job{}
	}
	mine := *job
	mine.Name, mine.Token = reuseText(job.Name, before.Name), reuseText(job.Token, before.Token)
	if r != noArray {
		r.nodeList, r.arrayTasks = reuseText(r.nodeList, before.rareParts().nodeList),
			reuseText(r.arrayTasks, before.rareParts().arrayTasks)
		uncommon := r
		mine.rare = &uncommon
	}
	return &mine
}

// reuseText returns a text that is kept already, or a copy.
func reuseText(text, kept string) string {
	if text == kept {
		return kept
	}
	return strings.Clone(text)
}

// toUint32 returns a count that can't be below 0.
func toUint32(n int) uint32 { return uint32(min(max(0, n), math.MaxInt32)) }

// toInt32 returns a number of the 32 bits that Slurm has for it.
func toInt32(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// timeOf returns the reverse of unix.
func timeOf(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func cut(text string) string { return text[:min(len(text), MaxText)] }

func internText(text string) unique.Handle[string] { return unique.Make(cut(text)) }

// internComment keeps what may be wishes in a comment.
func internComment(text string) unique.Handle[string] { return unique.Make(slurm.WishText(text)) }

// tresText returns a count of resources as a text that is the same for the same
// counts.
func tresText(t slurm.TRES) string {
	if len(t) == 0 {
		return ""
	}
	names := make([]string, 0, 8)
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	text := make([]byte, 0, 64)
	for _, name := range names {
		text = append(text, name...)
		text = append(text, '=')
		text = strconv.AppendFloat(text, t[name], 'g', -1, 64)
		text = append(text, ',')
	}
	return string(text)
}

// tresOf returns the reverse of tresText.
func tresOf(text string) slurm.TRES {
	t := slurm.TRES{}
	for part := range strings.SplitSeq(text, ",") {
		name, count, ok := strings.Cut(part, "=")
		if n, err := strconv.ParseFloat(count, 64); ok && err == nil {
			t[name] = n
		}
	}
	return t
}

// FromDescription returns a job of which Slurm said nothing, by what somebody else says of it.
func FromDescription(uid uint32, user, partition, comment string) *Job {
	return &Job{
		UID: uid, User: internText(user), Partition: internText(partition), Comment: internComment(comment),
		Account: internText(""),
	}
}
