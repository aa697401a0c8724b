package control

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unique"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// source is what repeats when a job is submitted again: its user's script, or
// its name where the script isn't known. Together with the number of GPUs it is
// a workload.
type source [12]byte

// sourceOf names a script by its hash, else by the job's name.
func sourceOf(uid uint32, scriptHash, name string) source {
	kind, what := "script", scriptHash
	if scriptHash == "" {
		kind, what = "name", name
	}
	sum := sha256.Sum256([]byte(strconv.FormatUint(uint64(uid), 10) + "\x00" + kind + "\x00" + what))
	return source(sum[:len(source{})])
}

func (s source) String() string { return hex.EncodeToString(s[:]) }

func parseSource(text string) (source, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(source{}) {
		return source{}, false
	}
	return source(raw), true
}

// workload is the key of a source on a number of GPUs.
func (s source) workload(gpus int) string { return s.String() + "x" + strconv.Itoa(gpus) }

// knownJob is what is kept of a job: there may be hundreds of thousands. It is
// never changed, only replaced.
type knownJob struct {
	source              source
	state               stateCode
	completing          bool
	scripted            bool // the source is a script's
	ownFreq             bool // the user's own --gpu-freq
	uid                 uint32
	gpus                uint32 // on all nodes; 0: not known
	nodes               uint32
	restarts            uint32
	nice                int32
	submitted, deadline int64 // Unix seconds; 0: not known, none
	limit               live.Limit
	user, account       unique.Handle[string]
	partition, comment  unique.Handle[string]
	about               unique.Handle[about]
	rare                *rare // nil: it has nothing of that
	name                plain
	token               string
}

// rare is what most jobs don't have, since most of many jobs wait.
type rare struct {
	nodeList         string
	arrayTasks       string
	arrayJob, hetJob slurm.JobID
	arrayTask        int32
	hetOffset        int32
	start            int64 // Unix seconds; of a pending job when it is planned to start
	end              int64 // Unix seconds, of a job that ended, or whose Epilogs run; 0: it didn't
	suspended        int64 // Unix seconds, when it was suspended or went on last; 0: never
}

// noArray is a job that is rare in nothing.
var noArray = rare{arrayTask: -1}

// unusual is what is rare about a job.
func (k *knownJob) unusual() *rare {
	if k.rare == nil {
		return &noArray
	}
	return k.rare
}

// about is what many jobs have in common. Most of it is for those who ask for
// the queue.
type about struct {
	qos, reason, features, prefer, gpuFreq, perNode string
	requested, allocated                            string // TRES
}

// plain is a text that few jobs share.
type plain string

// Value is the text.
func (p plain) Value() string { return string(p) }

// MaxText is how many bytes are kept of a name: longer ones are cut.
const MaxText = 256

// ReasonOwnFreq is the reason in the record of a submission, as in that of a decision,
// whose user asked for clocks of their own.
const ReasonOwnFreq = "the user asked for clocks with --gpu-freq: hands off"

// stateCode is a job's base state in a byte.
type stateCode uint8

// jobStates are Slurm's states by code; 0 is any other.
var jobStates = []slurm.State{
	slurm.UnknownJob, slurm.Pending, slurm.Running, slurm.Suspended, slurm.Completing, slurm.Configuring, slurm.Completed,
	slurm.Cancelled, slurm.Failed, slurm.Timeout, slurm.NodeFail, slurm.Preempted, slurm.BootFail, slurm.Deadline,
	slurm.OutOfMemory, slurm.Requeued, slurm.Revoked,
}

func codeOf(s slurm.State) stateCode {
	return stateCode(max(0, slices.Index(jobStates, s))) //nolint:gosec // fewer than 256
}

func (c stateCode) state() slurm.State { return jobStates[c] }

// stateOf is a job's state as it is kept. Old versions say COMPLETING, and not
// how the job ended, as long as it is.
func (k *knownJob) stateOf() slurm.JobState {
	s := slurm.JobState{Base: k.state.state()}
	if k.completing {
		s.Flags = []slurm.State{slurm.Completing}
	}
	return s
}

// known is a job as it is kept: what was known of it before, if nothing has
// changed. What a token stands for is taken from memory, or from what was known
// of the job before.
func (t *tracker) known(j *slurm.Job, before *knownJob) *knownJob {
	token, _, _ := slurm.ParseToken(j.AdminComment)
	// Not on the heap: most jobs don't change, and garbage between what stays
	// would cost more memory than that.
	k := knownJob{
		state: codeOf(j.State.Base), completing: j.State.Is(slurm.Completing) && j.State.Base != slurm.Completing,
		ownFreq: j.GPUFreq != "", uid: j.UID, gpus: small(j.Allocated.GPUs()), nodes: small(j.NodeCount),
		restarts: small(j.Restarts), nice: int32(min(max(j.Nice, math.MinInt32), math.MaxInt32)),
		submitted: unix(j.Submit), deadline: unix(j.Deadline),
		limit: t.limitOf(j.TimeLimit), user: kept(j.User), account: kept(j.Account), partition: kept(j.Partition),
		comment: keptComment(j.Comment), name: plain(cut(j.Name)), token: token,
		about: unique.Make(about{
			qos: j.QOS, reason: j.Reason, features: j.Features, prefer: j.Prefer, gpuFreq: j.GPUFreq, perNode: j.TRESPerNode,
			requested: tresText(j.Requested), allocated: tresText(j.Allocated),
		}),
	}
	if k.gpus == 0 { // it didn't start yet, or Slurm doesn't count GPUs
		k.gpus = small(j.GPUCount())
	}
	t.place(&k, j, before)
	r := rare{j.NodeList, j.ArrayTasks, j.ArrayJob, j.HetJob, within32(j.ArrayTask), within32(j.HetOffset), unix(j.Start), 0, unix(j.Suspended)}
	if j.State.Ended() || j.State.Is(slurm.Completing) {
		r.end = unix(j.End)
	}
	if before != nil && before.is(&k, r) {
		return before
	}
	t.options.SeeUser(k.uid, k.user.Value(), k.account.Value(), k.partition.Value())
	return k.own(r, before)
}

// place says of which workload a job is.
func (t *tracker) place(k *knownJob, j *slurm.Job, before *knownJob) {
	if k.token != "" {
		if s, ok := t.table.token(k.token); ok {
			k.source, k.scripted, k.ownFreq = s.source, true, k.ownFreq || s.ownFreq
			return
		}
		if before != nil && before.scripted && before.token == k.token && before.uid == k.uid {
			k.source, k.scripted, k.ownFreq = before.source, true, k.ownFreq || before.ownFreq
			return
		}
	}
	k.source = sourceOf(j.UID, "", j.Name)
}

// is tells whether a job is as it is to be kept.
func (k *knownJob) is(now *knownJob, r rare) bool {
	a := *k
	a.rare = now.rare
	return a == *now && *k.unusual() == r
}

// own is a copy that keeps nothing else alive, and shares its texts with what
// was known of the job before.
func (k *knownJob) own(r rare, before *knownJob) *knownJob {
	if before == nil {
		before = &knownJob{}
	}
	mine := *k
	mine.name, mine.token = ours(k.name, before.name), ours(k.token, before.token)
	if r != noArray {
		r.nodeList, r.arrayTasks = ours(r.nodeList, before.unusual().nodeList), ours(r.arrayTasks, before.unusual().arrayTasks)
		uncommon := r
		mine.rare = &uncommon
	}
	return &mine
}

// ours is a text that is kept already, or a copy.
func ours[T ~string](text, kept T) T {
	if text == kept {
		return kept
	}
	return T(strings.Clone(string(text)))
}

// small is a count that can't be below 0.
func small(n int) uint32 { return uint32(min(max(0, n), math.MaxInt32)) }

// within32 is a number of the 32 bits that Slurm has for it.
func within32(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// timeOf is the reverse of unix.
func timeOf(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func cut(text string) string { return text[:min(len(text), MaxText)] }

func kept(text string) unique.Handle[string] { return unique.Make(cut(text)) }

// keptComment keeps the words of a comment that may be wishes.
func keptComment(text string) unique.Handle[string] {
	text = text[:min(len(text), slurm.MaxText)]
	if !strings.Contains(text, wishPrefix) {
		return unique.Make("")
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ';' || unicode.IsSpace(r) })
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, wishPrefix) })
	return unique.Make(strings.Join(words, " "))
}

// wishPrefix begins a wish of a user.
const wishPrefix = "epplan:"

// limitOf is a limit of Slurm's in the GPUs' time.
func (t *tracker) limitOf(l live.Limit) live.Limit {
	return l.Map(func(d time.Duration) time.Duration {
		if t.options.Speed != 0 {
			d = time.Duration(float64(d) / t.options.Speed)
		}
		return max(d, time.Second)
	})
}

// tresText is a count of resources as a text that is the same for the same
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

// tresOf is the reverse of tresText.
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

// described is a job of which Slurm said nothing, by what somebody else says of it.
func described(uid uint32, user, partition, comment string) *knownJob {
	return &knownJob{
		uid: uid, user: kept(user), partition: kept(partition), comment: keptComment(comment), account: kept(""),
	}
}
