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
	"github.com/epplan/epplan/slurm/slurmconf"
)

// Bounds of what checks share. Slurm's commands give up after 10 s by
// themselves, and say then that nobody is there, whether or not somebody is.
const (
	slurmTimeout = 8 * time.Second
	epdTimeout   = 4 * time.Second
	mungeTimeout = 3 * time.Second
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

// examination is one visit: the options, and what was found out so far.
type examination struct {
	Options
	site *Site
	role Role

	mungeFact *lazyValue[string] // of Slurm: nothing; the error says what is wrong
	conf      *lazyValue[settings]
	agentFact *lazyValue[*epdapi.Status]
	headFact  *lazyValue[*epdapi.Status]
	fileFact  *lazyValue[*config.Config]
	nodesFact *lazyValue[[]slurm.Node]
	ping      *lazyValue[struct{}]
}

// settings are slurm.conf's, by lower-case name.
type settings struct {
	values map[string]string
	path   string // of slurm.conf
	byFile string // why they are those of the file; empty: they are slurmctld's
}

func (s *settings) get(name string) string { return s.values[strings.ToLower(name)] }

func newExamination(ctx context.Context, site *Site, o Options) *examination {
	e := &examination{Options: o, site: site}
	e.mungeFact = newLazy(ctx, mungeTimeout, func(ctx context.Context) (string, error) {
		return e.tryMunge(ctx, e.slurmMunge())
	})
	e.conf = newLazy(ctx, slurmTimeout+mungeTimeout, e.readSettings)
	e.agentFact = newLazy(ctx, epdTimeout, func(ctx context.Context) (*epdapi.Status, error) {
		return e.askEPD(ctx, e.agentSocket())
	})
	e.headFact = newLazy(ctx, 2*epdTimeout, e.findController)
	e.fileFact = newLazy(ctx, 3*epdTimeout, e.readConfig)
	e.nodesFact = newLazy(ctx, slurmTimeout, func(ctx context.Context) ([]slurm.Node, error) {
		return e.client().Nodes(ctx)
	})
	e.ping = newLazy(ctx, slurmTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.client().Ping(ctx)
	})
	e.role = e.findRole()
	return e
}

func (e *examination) client() *slurm.Client { return slurm.NewClient(e.site.Slurm, slurmTimeout) }

// findRole looks at what runs here, and at epd's sockets.
func (e *examination) findRole() Role {
	if e.Role != "" && e.Role != Auto {
		return e.Role
	}
	head, node := e.exists(e.publicSocket()) || e.exists(e.controllerSocket()), e.exists(e.agentSocket()) ||
		e.exists("/dev/nvidia0")
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

func (e *examination) exists(path string) bool {
	_, err := e.site.Files.Stat(path)
	return err == nil
}

// Where epd is asked.
func (e *examination) agentSocket() string { return textOr(e.AgentSocket, epdapi.AgentSocket) }

func (e *examination) controllerSocket() string {
	return textOr(e.ControllerSocket, epdapi.ControllerSocket)
}
func (e *examination) publicSocket() string { return textOr(e.PublicSocket, epdapi.PublicSocket) }

// adminSocket is where the controller here answers: its own socket, or that of
// an epd that is both.
func (e *examination) adminSocket() string {
	if e.ControllerSocket == "" && e.AgentSocket != "" {
		return e.agentSocket()
	}
	return e.controllerSocket()
}

// submitSocket is where job_submit is answered.
func (e *examination) submitSocket(ctx context.Context) string {
	return textOr(textOr(e.PublicSocket, e.epdHealth(ctx, e.headStatus).SubmitSocket), e.publicSocket())
}

// program is epplan, as it is typed.
func (e *examination) program() string { return shellQuote(textOr(e.Program, "epplan")) }

func textOr(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// slurmConf is the path of slurm.conf.
func (e *examination) slurmConf() string { return textOr(e.SlurmConf, defaultSlurmConf) }

// slurmMunge is the socket of the munged that Slurm asks, by slurm.conf: without
// munge slurmctld can't be asked for it.
func (e *examination) slurmMunge() string {
	if e.MungeSocket != "" {
		return e.MungeSocket
	}
	text, err := e.site.Files.Read(e.slurmConf())
	if err == nil {
		for part := range strings.SplitSeq(slurmconf.Values(text)["authinfo"], ",") {
			if path, ok := strings.CutPrefix(strings.TrimSpace(part), "socket="); ok {
				return path
			}
		}
	}
	return munge.DefaultSocket
}

// tryMunge makes a credential and reads it. The result is the socket.
func (e *examination) tryMunge(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mungeTimeout)
	defer cancel()
	m := e.site.Munge(socket)
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

func (e *examination) munge(ctx context.Context) (string, error) {
	return e.mungeFact.get(ctx)
}

// settings are slurmctld's; those of slurm.conf where it doesn't tell.
func (e *examination) settings(ctx context.Context) (*settings, error) {
	s, err := e.conf.get(ctx)
	return &s, err
}

func (e *examination) readSettings(ctx context.Context) (settings, error) {
	var failed error
	if e.site.Slurm == nil {
		failed = errNoSlurm
	} else if _, err := e.munge(ctx); err != nil {
		failed = errors.New("munge doesn't work")
	} else {
		asked, cancel := context.WithTimeout(ctx, slurmTimeout)
		defer cancel()
		var all map[string]string
		if all, failed = e.client().Settings(asked); failed == nil {
			s := settings{values: make(map[string]string), path: textOr(all["SLURM_CONF"], e.slurmConf())}
			// [9] is before [10].
			shorter := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
			for _, key := range slices.SortedFunc(maps.Keys(all), shorter) {
				value := all[key]
				name, _, _ := strings.Cut(strings.ToLower(key), "[") // Prolog[0] from 23.11
				if s.values[name] != "" && value != "" {
					value = s.values[name] + "," + value
				}
				s.values[name] = textOr(value, s.values[name])
			}
			return s, nil
		}
	}
	text, err := e.site.Files.Read(e.slurmConf())
	if err != nil {
		return settings{}, fmt.Errorf("neither slurmctld (%w) nor %s tells Slurm's settings", failed,
			e.slurmConf())
	}
	return settings{values: slurmconf.Values(text), path: e.slurmConf(), byFile: failed.Error()}, nil
}

// askEPD asks the epd at a socket.
func (e *examination) askEPD(ctx context.Context, socket string) (*epdapi.Status, error) {
	return e.site.EPD(socket).Status(ctx)
}

// agentStatus is the status of this node's epd.
func (e *examination) agentStatus(ctx context.Context) (*epdapi.Status, error) {
	return e.agentFact.get(ctx)
}

// headStatus is the status of the controller on this machine.
func (e *examination) headStatus(ctx context.Context) (*epdapi.Status, error) {
	return e.headFact.get(ctx)
}

// findController asks the controller's own socket where there is one, and else
// the agent's: one process may be both.
func (e *examination) findController(ctx context.Context) (*epdapi.Status, error) {
	if e.ControllerSocket == "" && !e.exists(e.controllerSocket()) {
		if s, err := e.agentStatus(ctx); err == nil && s.Controller != nil || e.AgentSocket != "" {
			return s, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, epdTimeout)
	defer cancel()
	return e.askEPD(ctx, e.controllerSocket())
}

// controllerStatus is how this machine's controller fares.
func (e *examination) controllerStatus(
	ctx context.Context,
) (*epdapi.Status, *epdapi.ControllerStatus, error) {
	s, err := e.headStatus(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case s.Controller == nil:
		return nil, nil, errors.New("the epd here is an agent")
	}
	return s, s.Controller, nil
}

// epdHealth is what an epd here tells of its files; never nil.
func (e *examination) epdHealth(
	ctx context.Context, ask func(context.Context) (*epdapi.Status, error),
) *epdapi.Health {
	if s, err := ask(ctx); err == nil && s.Health != nil {
		return s.Health
	}
	return &epdapi.Health{}
}

// agentState is the folder of the agent's files: where epd doesn't tell, that in
// which the Epilog looks for the journal.
func (e *examination) agentState(ctx context.Context) string {
	if state := textOr(e.State, e.epdHealth(ctx, e.agentStatus).State); state != "" {
		return state
	}
	if journal := e.epilogJournal(ctx); filepath.Base(journal) == journalFolder {
		return filepath.Dir(journal)
	}
	return defaultState
}

// controllerState is the folder of the controller's records.
func (e *examination) controllerState(ctx context.Context) string {
	known := textOr(textOr(e.ControllerState, e.State), e.epdHealth(ctx, e.headStatus).State)
	if known == "" && e.exists(defaultControllerState) {
		known = defaultControllerState
	}
	return textOr(known, defaultState)
}

// configPath is the file of epd's configuration; empty: there is none.
func (e *examination) configPath(ctx context.Context) string {
	if path := textOr(e.Config, e.epdHealth(ctx, e.headStatus).Config); path != "" {
		return path
	}
	if s, err := e.headStatus(ctx); err == nil && s.Health != nil {
		return "" // epd runs without one
	}
	return defaultConfig
}

// epdConfig is the configuration in the file; nil: there is none.
func (e *examination) epdConfig(ctx context.Context) (*config.Config, error) {
	return e.fileFact.get(ctx)
}

func (e *examination) readConfig(ctx context.Context) (*config.Config, error) {
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

// lockHolder is the process that has a state folder in a role, by the lock that an
// epd holds on it; 0: nobody. The lock is looked at, not tried.
func (e *examination) lockHolder(state, role string) (pid int, err error) {
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
