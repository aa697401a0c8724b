package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
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
	options Options
	site    *Site
	role    Role

	// Found out when it is first asked for.
	munge       func(context.Context) (string, error)         // Slurm's socket, empty: it asks none; the error says what is wrong
	settings    func(context.Context) (*settings, error)      // slurmctld's, else those of slurm.conf
	agentStatus func(context.Context) (*epdapi.Status, error) // of this node's epd
	headStatus  func(context.Context) (*epdapi.Status, error) // of the controller on this machine
	epdConfig   func(context.Context) (*config.Config, error) // in the file; nil: there is none
	slurmNodes  func(context.Context) ([]slurm.Node, error)
	ping        func(context.Context) (struct{}, error)
}

// settings are slurm.conf's, by lower-case name.
type settings struct {
	values map[string]string
	path   string // of slurm.conf
	byFile string // why they are those of the file; empty: they are slurmctld's
}

func (s *settings) get(name string) string { return s.values[strings.ToLower(name)] }

func newExamination(ctx context.Context, site *Site, o Options) *examination {
	e := &examination{options: o, site: site}
	e.munge = lazy(ctx, mungeTimeout, func(ctx context.Context) (string, error) {
		kind, socket := e.slurmAuth()
		if kind == slurmNativeAuth {
			return "", nil
		}
		return e.site.tryMunge(ctx, socket)
	})
	e.settings = lazy(ctx, slurmTimeout+mungeTimeout, e.readSettings)
	e.agentStatus = lazy(ctx, epdTimeout, func(ctx context.Context) (*epdapi.Status, error) {
		return e.site.askEPD(ctx, e.options.agentSocket())
	})
	e.headStatus = lazy(ctx, 2*epdTimeout, e.findController)
	e.epdConfig = lazy(ctx, 3*epdTimeout, e.readConfig)
	e.slurmNodes = lazy(ctx, slurmTimeout, func(ctx context.Context) ([]slurm.Node, error) {
		nodes, _, err := e.site.client().Nodes(ctx) // epd's status counts those that can't be read
		return nodes, err
	})
	e.ping = lazy(ctx, slurmTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.site.client().Ping(ctx)
	})
	e.role = e.findRole()
	return e
}

func (e *examination) findRole() Role {
	if e.options.Role != "" && e.options.Role != Auto {
		return e.options.Role
	}
	head := e.site.exists(e.options.publicSocket()) || e.site.exists(e.options.controllerSocket())
	node := e.site.exists(e.options.agentSocket()) || e.site.exists("/dev/nvidia0")
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

// submitSocket returns where job_submit is answered.
func (e *examination) submitSocket(ctx context.Context) string {
	given := e.options.PublicSocket
	return cmp.Or(given, e.epdHealth(ctx, e.headStatus).SubmitSocket, e.options.publicSocket())
}

// slurmNativeAuth is the AuthType of a Slurm that does without munge, from 23.11 on.
const slurmNativeAuth = "auth/slurm"

// slurmAuth returns how Slurm's parts prove who they are, and the socket of the munged that they ask, by
// slurm.conf: without proof slurmctld can't be asked for it.
func (e *examination) slurmAuth() (kind, socket string) {
	socket = e.options.MungeSocket
	text, err := e.site.Files.Read(e.options.slurmConf())
	if err != nil {
		return "", cmp.Or(socket, munge.DefaultSocket)
	}
	values := slurmconf.Values(text)
	for part := range strings.SplitSeq(values["authinfo"], ",") {
		if path, ok := strings.CutPrefix(strings.TrimSpace(part), "socket="); ok {
			socket = cmp.Or(socket, path)
		}
	}
	return strings.ToLower(values["authtype"]), cmp.Or(socket, munge.DefaultSocket)
}

func (e *examination) readSettings(ctx context.Context) (*settings, error) {
	var failed error
	if e.site.Slurm == nil {
		failed = errNoSlurm
	} else if _, err := e.munge(ctx); err != nil {
		failed = errors.New("munge doesn't work")
	} else {
		asked, cancel := context.WithTimeout(ctx, slurmTimeout)
		defer cancel()
		var all map[string]string
		if all, failed = e.site.client().Settings(asked); failed == nil {
			s := &settings{values: make(map[string]string), path: cmp.Or(all["SLURM_CONF"], e.options.slurmConf())}
			// [9] is before [10].
			shorter := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
			for _, key := range slices.SortedFunc(maps.Keys(all), shorter) {
				value := all[key]
				name, _, _ := strings.Cut(strings.ToLower(key), "[") // Prolog[0] from 23.11
				if s.values[name] != "" && value != "" {
					value = s.values[name] + "," + value
				}
				s.values[name] = cmp.Or(value, s.values[name])
			}
			return s, nil
		}
	}
	text, err := e.site.Files.Read(e.options.slurmConf())
	if err != nil {
		return nil, fmt.Errorf("neither slurmctld (%w) nor %s tells Slurm's settings", failed,
			e.options.slurmConf())
	}
	s := &settings{values: slurmconf.Values(text), path: e.options.slurmConf(), byFile: failed.Error()}
	for _, hook := range []hooks.Hook{hooks.Prolog, hooks.Epilog} { // from 23.11 on each line counts
		var all []string
		for _, line := range slurmconf.HookLines(text, string(hook)) {
			all = append(all, strings.Trim(line.Text, `"`))
		}
		if len(all) > 1 && e.site.mayBeFrom(ctx, 23, 11) {
			s.values[string(hook)] = strings.Join(all, ",")
		}
	}
	return s, nil
}

// findController asks the controller's own socket where there is one, and else
// the agent's: one process may be both.
func (e *examination) findController(ctx context.Context) (*epdapi.Status, error) {
	if e.options.ControllerSocket == "" && !e.site.exists(e.options.controllerSocket()) {
		if s, err := e.agentStatus(ctx); err == nil && s.Controller != nil || e.options.AgentSocket != "" {
			return s, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, epdTimeout)
	defer cancel()
	return e.site.askEPD(ctx, e.options.controllerSocket())
}

// controllerStatus returns how this machine's controller fares.
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

// epdHealth returns what an epd here tells of its files; never nil.
func (e *examination) epdHealth(
	ctx context.Context, ask func(context.Context) (*epdapi.Status, error),
) *epdapi.Health {
	if s, err := ask(ctx); err == nil && s.Health != nil {
		return s.Health
	}
	return &epdapi.Health{}
}

// agentStateFolder returns the folder of the agent's files: where epd doesn't tell, that in
// which the Epilog looks for the journal.
func (e *examination) agentStateFolder(ctx context.Context) string {
	if state := cmp.Or(e.options.State, e.epdHealth(ctx, e.agentStatus).State); state != "" {
		return state
	}
	if journal := e.epilogJournal(ctx); filepath.Base(journal) == journalFolder {
		return filepath.Dir(journal)
	}
	return defaultState
}

// controllerState returns the folder of the controller's records.
func (e *examination) controllerState(ctx context.Context) string {
	known := cmp.Or(e.options.ControllerState, e.options.State, e.epdHealth(ctx, e.headStatus).State)
	if known == "" && e.site.exists(defaultControllerState) {
		known = defaultControllerState
	}
	return cmp.Or(known, defaultState)
}

// configPath returns the file of epd's configuration; empty: there is none.
func (e *examination) configPath(ctx context.Context) string {
	if path := cmp.Or(e.options.Config, e.epdHealth(ctx, e.headStatus).Config); path != "" {
		return path
	}
	if s, err := e.headStatus(ctx); err == nil && s.Health != nil {
		return "" // epd runs without one
	}
	return defaultConfig
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

// settingsCheck returns a check that goes by Slurm's settings.
func settingsCheck(
	look func(context.Context, *examination, *settings) []Finding,
) func(context.Context, *examination) []Finding {
	return func(ctx context.Context, e *examination) []Finding {
		s, err := e.settings(ctx)
		if err != nil {
			return unknownFinding("%v", err)
		}
		return look(ctx, e, s)
	}
}
