package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/slurm"
)

// Bounds of what checks share. Slurm's commands give up after 10 s by
// themselves, and say then that nobody is there, whether or not somebody is.
const (
	slurmBound = 8 * time.Second
	epdBound   = 4 * time.Second
	mungeBound = 3 * time.Second
)

// The places that hold unless the options, or epd, say otherwise.
const (
	defaultState           = "/var/lib/epplan"
	defaultControllerState = "/var/lib/epplan-controller"
	defaultConfig          = "/etc/epplan/config.toml"
	defaultSlurmConf       = "/etc/slurm/slurm.conf"
)

// errNoSlurm tells that Slurm's commands aren't here.
var errNoSlurm = errors.New("Slurm's commands aren't installed here") //nolint:staticcheck // a name

// errNoEPD tells that an epd isn't there to be asked.
var errNoEPD = errors.New("no epd answers here")

// exam is one visit: the options, and what was found out so far.
type exam struct {
	Options
	site *Site
	role Role

	mungeFact *lazy[string] // of Slurm: nothing; the error says what is wrong
	conf      *lazy[settings]
	agentFact *lazy[*epdapi.Status]
	headFact  *lazy[*epdapi.Status]
	fileFact  *lazy[*config.Config]
	nodesFact *lazy[[]slurm.Node]
	ping      *lazy[struct{}]
}

// settings are slurm.conf's, by lower-case name.
type settings struct {
	values map[string]string
	path   string // of slurm.conf
	byFile string // why they are those of the file; empty: they are slurmctld's
}

func (s *settings) get(name string) string { return s.values[strings.ToLower(name)] }

func newExam(ctx context.Context, site *Site, o Options) *exam {
	e := &exam{Options: o, site: site}
	e.mungeFact = later(ctx, mungeBound, func(ctx context.Context) (string, error) { return e.tryMunge(ctx, e.slurmMunge()) })
	e.conf = later(ctx, slurmBound+mungeBound, e.readSettings)
	e.agentFact = later(ctx, epdBound, func(ctx context.Context) (*epdapi.Status, error) { return e.askEPD(ctx, e.agentSocket()) })
	e.headFact = later(ctx, 2*epdBound, e.findController)
	e.fileFact = later(ctx, 3*epdBound, e.readConfig)
	e.nodesFact = later(ctx, slurmBound, func(ctx context.Context) ([]slurm.Node, error) { return e.client().Nodes(ctx) })
	e.ping = later(ctx, slurmBound, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.client().Ping(ctx) })
	e.role = e.findRole()
	return e
}

func (e *exam) client() *slurm.Client { return slurm.NewClient(e.site.Slurm, slurmBound) }

// findRole looks at what runs here, and at epd's sockets.
func (e *exam) findRole() Role {
	if e.Role != "" && e.Role != Auto {
		return e.Role
	}
	head, node := e.exists(e.publicSocket()) || e.exists(e.controllerSocket()), e.exists(e.agentSocket()) || e.exists("/dev/nvidia0")
	for _, path := range e.site.Files.Glob("/proc/[0-9]*/comm") {
		name, _ := e.site.Files.Read(path)
		switch strings.TrimSpace(name) {
		case "slurmctld":
			head = true
		case "slurmd":
			node = true
		}
	}
	switch {
	case head == node:
		return Both
	case head:
		return Head
	}
	return Node
}

func (e *exam) exists(path string) bool {
	_, err := e.site.Files.Stat(path)
	return err == nil
}

// Where epd is asked.
func (e *exam) agentSocket() string      { return or(e.AgentSocket, epdapi.AgentSocket) }
func (e *exam) controllerSocket() string { return or(e.ControllerSocket, epdapi.ControllerSocket) }
func (e *exam) publicSocket() string     { return or(e.PublicSocket, epdapi.PublicSocket) }

// adminSocket is where the controller here answers: its own socket, or that of
// an epd that is both.
func (e *exam) adminSocket() string {
	if e.ControllerSocket == "" && e.AgentSocket != "" {
		return e.agentSocket()
	}
	return e.controllerSocket()
}

// submitSocket is where job_submit is answered.
func (e *exam) submitSocket(ctx context.Context) string {
	return or(or(e.PublicSocket, e.health(ctx, e.head).SubmitSocket), e.publicSocket())
}

// program is epplan, as it is typed.
func (e *exam) program() string { return quote(or(e.Program, "epplan")) }

func or(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// slurmConf is the path of slurm.conf.
func (e *exam) slurmConf() string { return or(e.SlurmConf, defaultSlurmConf) }

// slurmMunge is the socket of the munged that Slurm asks, by slurm.conf: without
// munge slurmctld can't be asked for it.
func (e *exam) slurmMunge() string {
	if e.MungeSocket != "" {
		return e.MungeSocket
	}
	text, err := e.site.Files.Read(e.slurmConf())
	if err == nil {
		for part := range strings.SplitSeq(slurm.ConfSettings(text)["authinfo"], ",") {
			if path, ok := strings.CutPrefix(strings.TrimSpace(part), "socket="); ok {
				return path
			}
		}
	}
	return munge.DefaultSocket
}

// tryMunge makes a credential and reads it. The result is the socket.
func (e *exam) tryMunge(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mungeBound)
	defer cancel()
	m := e.site.Munge(socket)
	const text = "epplan doctor"
	credential, err := m.Encode(ctx, []byte(text), munge.Terms{})
	if err != nil {
		return socket, err
	}
	c, err := m.Decode(ctx, credential)
	if err == nil && string(c.Payload) != text {
		err = fmt.Errorf("%s decodes to something else than was encoded", socket)
	}
	return socket, err
}

func (e *exam) munge(ctx context.Context) (string, error) {
	return e.mungeFact.ask(ctx)
}

// settings are slurmctld's; those of slurm.conf where it doesn't tell.
func (e *exam) settings(ctx context.Context) (*settings, error) {
	s, err := e.conf.ask(ctx)
	return &s, err
}

func (e *exam) readSettings(ctx context.Context) (settings, error) {
	var failed error
	if e.site.Slurm == nil {
		failed = errNoSlurm
	} else if _, err := e.munge(ctx); err != nil {
		failed = errors.New("munge doesn't work")
	} else {
		asked, cancel := context.WithTimeout(ctx, slurmBound)
		defer cancel()
		var all map[string]string
		if all, failed = e.client().Settings(asked); failed == nil {
			s := settings{values: make(map[string]string), path: or(all["SLURM_CONF"], e.slurmConf())}
			shorter := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) } // [9] is before [10]
			for _, key := range slices.SortedFunc(maps.Keys(all), shorter) {
				value := all[key]
				name, _, _ := strings.Cut(strings.ToLower(key), "[") // Prolog[0] from 23.11
				if s.values[name] != "" && value != "" {
					value = s.values[name] + "," + value
				}
				s.values[name] = or(value, s.values[name])
			}
			return s, nil
		}
	}
	text, err := e.site.Files.Read(e.slurmConf())
	if err != nil {
		return settings{}, fmt.Errorf("neither slurmctld (%w) nor %s tells Slurm's settings", failed, e.slurmConf())
	}
	return settings{values: slurm.ConfSettings(text), path: e.slurmConf(), byFile: failed.Error()}, nil
}

// askEPD asks the epd at a socket.
func (e *exam) askEPD(ctx context.Context, socket string) (*epdapi.Status, error) {
	return e.site.EPD(socket).Status(ctx)
}

// agent is the status of this node's epd.
func (e *exam) agent(ctx context.Context) (*epdapi.Status, error) {
	return e.agentFact.ask(ctx)
}

// head is the status of the controller on this machine.
func (e *exam) head(ctx context.Context) (*epdapi.Status, error) {
	return e.headFact.ask(ctx)
}

// findController asks the controller's own socket where there is one, and else
// the agent's: one process may be both.
func (e *exam) findController(ctx context.Context) (*epdapi.Status, error) {
	if e.ControllerSocket == "" && !e.exists(e.controllerSocket()) {
		if s, err := e.agent(ctx); err == nil && s.Controller != nil || e.AgentSocket != "" {
			return s, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, epdBound)
	defer cancel()
	return e.askEPD(ctx, e.controllerSocket())
}

// controller is how this machine's controller fares.
func (e *exam) controller(ctx context.Context) (*epdapi.Status, *epdapi.ControllerStatus, error) {
	s, err := e.head(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case s.Controller == nil:
		return nil, nil, errors.New("the epd here is an agent")
	}
	return s, s.Controller, nil
}

// health is what an epd here tells of its files; never nil.
func (e *exam) health(ctx context.Context, ask func(context.Context) (*epdapi.Status, error)) *epdapi.Health {
	if s, err := ask(ctx); err == nil && s.Health != nil {
		return s.Health
	}
	return &epdapi.Health{}
}

// agentState is the folder of the agent's files: where epd doesn't tell, that in
// which the Epilog looks for the journal.
func (e *exam) agentState(ctx context.Context) string {
	if state := or(e.State, e.health(ctx, e.agent).State); state != "" {
		return state
	}
	if journal := e.epilogJournal(ctx); filepath.Base(journal) == journalFolder {
		return filepath.Dir(journal)
	}
	return defaultState
}

// controllerState is the folder of the controller's records.
func (e *exam) controllerState(ctx context.Context) string {
	known := or(or(e.ControllerState, e.State), e.health(ctx, e.head).State)
	if known == "" && e.exists(defaultControllerState) {
		known = defaultControllerState
	}
	return or(known, defaultState)
}

// configPath is the file of epd's configuration; empty: there is none.
func (e *exam) configPath(ctx context.Context) string {
	if path := or(e.Config, e.health(ctx, e.head).Config); path != "" {
		return path
	}
	if s, err := e.head(ctx); err == nil && s.Health != nil {
		return "" // epd runs without one
	}
	return defaultConfig
}

// epdConfig is the configuration in the file; nil: there is none.
func (e *exam) epdConfig(ctx context.Context) (*config.Config, error) {
	return e.fileFact.ask(ctx)
}

func (e *exam) readConfig(ctx context.Context) (*config.Config, error) {
	path := e.configPath(ctx)
	if path == "" {
		return nil, nil //nolint:nilnil // as documented
	}
	text, err := e.site.Files.Read(path)
	if err != nil {
		return nil, err
	}
	return config.Load(strings.NewReader(text), path, nil)
}

// holder is the process that has a state folder in a role, by the lock that an
// epd holds on it; 0: nobody. The lock is looked at, not tried.
func (e *exam) holder(state, role string) (pid int, err error) {
	info, err := e.site.Files.Stat(filepath.Join(state, role+".lock"))
	if err != nil {
		return 0, err
	}
	text, err := e.site.Files.Read("/proc/locks")
	if err != nil {
		return 0, err
	}
	suffix := ":" + strconv.FormatUint(info.Inode, 10)
	for line := range strings.Lines(text) {
		const pidField, inodeField = 4, 5
		words := slices.DeleteFunc(strings.Fields(line), func(w string) bool { return w == "->" })
		if len(words) > inodeField && words[1] == "FLOCK" && strings.HasSuffix(words[inodeField], suffix) {
			pid, err := strconv.Atoi(words[pidField])
			return max(pid, 1), err
		}
	}
	return 0, nil
}
