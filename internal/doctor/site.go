package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Site is the machine that is looked at. Each part keeps to its context's time,
// and changes nothing.
type Site struct {
	// Slurm runs Slurm's own commands; nil: there are none here.
	Slurm slurm.Runner
	// Run runs another program and returns what it prints on standard output.
	// Its error has what it complains of. The program's absence is
	// [exec.ErrNotFound].
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// Files are the machine's.
	Files Files
	// Munge is the munged at a socket.
	Munge func(socket string) Munge
	// EPD is the epd at a socket.
	EPD func(socket string) EPD
	// Remote asks the controller at HOST:PORT what it is doing and what time it is there.
	Remote func(ctx context.Context, address string, by Proof) (*epdapi.Status, time.Time, error)
	// Now is this machine's time.
	Now func() time.Time
}

// Proof is how this machine proves to a controller who it is: by a key of its own, or else by the munged
// at a socket.
type Proof struct {
	MungeSocket      string // empty: munge's own
	Key, TrustedKeys string
}

// proofOf returns how an epd proves who it is.
func proofOf(h *epdapi.Health) Proof {
	return Proof{MungeSocket: h.MungeSocket, Key: h.Key, TrustedKeys: h.TrustedKeys}
}

func (s *Site) exists(path string) bool {
	_, err := s.Files.Stat(path)
	return err == nil
}

// client asks Slurm, in a bounded time.
func (s *Site) client() *slurm.Client { return slurm.NewClient(s.Slurm, slurmTimeout) }

// mayBeFrom reports whether Slurm is of a release or a later one, or can't say. Its commands tell without
// slurmctld.
func (s *Site) mayBeFrom(ctx context.Context, major, minor int) bool {
	if s.Slurm == nil {
		return true
	}
	v, err := s.client().Version(ctx)
	return err != nil || v.AtLeast(major, minor)
}

// tryMunge makes a credential and reads it. The result is the socket.
func (s *Site) tryMunge(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mungeTimeout)
	defer cancel()
	m := s.Munge(socket)
	const text = "epplan doctor"
	credential, err := m.Encode(ctx, []byte(text), munge.CredentialTerms{})
	if err != nil {
		return socket, err
	}
	c, err := m.Decode(ctx, credential)
	if err == nil && string(c.Payload) != text {
		err = fmt.Errorf("%s decodes to something else than was encoded", socket)
	}
	return socket, err
}

func (s *Site) askEPD(ctx context.Context, socket string) (*epdapi.Status, error) {
	return s.EPD(socket).Status(ctx)
}

// lockHolder returns the process that has a state folder in a role, by the lock that an
// epd holds on it; 0: nobody. The lock is looked at, not tried. The kernel prints its locks in parts, and
// leaves one out where others end meanwhile: nobody holds it where it is missing several times.
func (s *Site) lockHolder(state, role string) (pid int, err error) {
	info, err := s.Files.Stat(filepath.Join(state, role+".lock"))
	if err != nil {
		return 0, err
	}
	const looks = 8
	for range looks {
		text, err := s.Files.Read("/proc/locks")
		if err != nil {
			return 0, err
		}
		if pid, err := holderIn(text, info.Inode); pid != 0 || err != nil {
			return pid, err
		}
	}
	return 0, nil
}

// holderIn returns the process that locks a file, by what the kernel prints of locks; 0: none does.
func holderIn(locks string, inode uint64) (pid int, err error) {
	suffix := ":" + strconv.FormatUint(inode, 10)
	for line := range strings.Lines(locks) {
		const pidField, inodeField = 4, 5
		words := slices.DeleteFunc(strings.Fields(line), func(w string) bool { return w == "->" })
		if len(words) > inodeField && words[1] == "FLOCK" && strings.HasSuffix(words[inodeField], suffix) {
			pid, err := strconv.Atoi(words[pidField])
			return max(pid, 1), err
		}
	}
	return 0, nil
}

// EPD is an epd that can be asked.
type EPD interface {
	Status(ctx context.Context) (*epdapi.Status, error)
	Levers(ctx context.Context) (*epdapi.Levers, error)
}

// Munge makes and reads credentials.
type Munge interface {
	Encode(ctx context.Context, payload []byte, t munge.CredentialTerms) (string, error)
	Decode(ctx context.Context, credential string) (munge.Credential, error)
}

// Files are files, looked at.
type Files interface {
	Read(path string) (string, error)
	Stat(path string) (Info, error)
	Glob(pattern string) []string
	// FreeSpace is the space of the file system of a path that can still be written,
	// and all of it, in bytes.
	FreeSpace(path string) (free, all uint64, err error)
	// CheckTrust says by its error, a [statedir.InsecureError], what keeps an epd of a user
	// from using a folder.
	CheckTrust(path string, uid uint32) error
}

// Info is what is known of a file.
type Info struct {
	Mode  fs.FileMode
	UID   uint32
	Inode uint64
	Size  int64
	At    time.Time // of the last change
}

// Options say where to look. Empty ones are found out, or the defaults.
type Options struct {
	Role             Role
	AgentSocket      string
	ControllerSocket string
	PublicSocket     string
	State            string // folder of the agent's, or of the only epd
	ControllerState  string // folder of the controller's records
	Config           string // file of epd's
	SlurmConf        string // path of slurm.conf
	MungeSocket      string
	Controllers      []string // HOST:PORT, of an agent
	Version          string   // of the program that asks
	EPDProgram       string   // epd, for its db check
	Program          string   // epplan, as it is typed in fixes
	Path             string   // where epplan is, for hooks
	Timeout          time.Duration
}

// agentSocket, controllerSocket and publicSocket are where epd is asked.
func (o *Options) agentSocket() string { return cmp.Or(o.AgentSocket, epdapi.AgentSocket) }

func (o *Options) controllerSocket() string {
	return cmp.Or(o.ControllerSocket, epdapi.ControllerSocket)
}

func (o *Options) publicSocket() string { return cmp.Or(o.PublicSocket, epdapi.PublicSocket) }

// adminSocket returns where the controller here answers: its own socket, or that of
// an epd that is both.
func (o *Options) adminSocket() string {
	if o.ControllerSocket == "" && o.AgentSocket != "" {
		return o.agentSocket()
	}
	return o.controllerSocket()
}

func (o *Options) program() string { return hooks.ShellQuote(cmp.Or(o.Program, "epplan")) }

func (o *Options) slurmConf() string { return cmp.Or(o.SlurmConf, defaultSlurmConf) }

// Role is what a machine is for.
type Role string

// Roles. One machine may have both.
const (
	Auto Role = "auto" // to be found out
	Head Role = "head" // slurmctld, and epd's controller
	Node Role = "node" // slurmd, GPUs, and epd's agent
	Both Role = "both"
)
