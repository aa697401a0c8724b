package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
)

var epdDown = &Fault{
	"epd-down", Bad, "no epd runs here as {part}: nobody holds {state}", "{without}",
	Fix{Run: "systemctl enable --now {unit}"},
}

var epdHung = &Fault{
	"epd-hung", Bad, "epd at {socket} takes calls and doesn't answer within {bound}", "{without}",
	Fix{Run: "systemctl restart {unit}"},
}

var socketGone = &Fault{
	"socket-missing", Bad, "epd runs (process {pid}) without its socket {socket}", "{without}",
	Fix{Run: "systemctl restart {unit}"},
}

// epdRole is one of epd's two roles on a machine.
type epdRole struct {
	name, unit, without string
	ask                 func(*examination) func(context.Context) (*epdapi.Status, error)
	socket              func(*Options) string
	state               func(*examination, context.Context) string
}

var agentRole = &epdRole{
	"agent", "epd-agent", "jobs of this node run at default clocks, and are not recorded",
	func(e *examination) func(context.Context) (*epdapi.Status, error) { return e.agentStatus },
	(*Options).agentSocket, (*examination).agentStateFolder,
}

var controllerRole = &epdRole{
	"controller", "epd-controller", "all jobs run at default clocks, and nothing is learnt",
	func(e *examination) func(context.Context) (*epdapi.Status, error) { return e.headStatus },
	(*Options).adminSocket, (*examination).controllerState,
}

func (p *epdRole) check(ctx context.Context, e *examination) []Finding {
	s, err := p.ask(e)(ctx)
	if err == nil {
		return okFinding("epd %s, role %s, on %s", s.Version, s.Role, s.Node)
	}
	state, socket := p.state(e, ctx), p.socket(&e.options)
	words := []string{
		"part", p.name, "unit", e.unitName(p.unit), "without", p.without, "state", state, "socket", socket,
		"bound", epdTimeout.String(),
	}
	pid, unheld := e.site.lockHolder(state, p.name)
	switch {
	case errors.Is(err, fs.ErrPermission) || isRefused(err):
		return unknownFinding("only root and Slurm's user may ask epd at %s", socket)
	case isTimeout(err):
		return epdHung.finding(words...)
	case unheld != nil && !errors.Is(unheld, fs.ErrNotExist):
		return unknownFinding("%v; whether an epd runs can't be seen: %v", err, unheld)
	case pid == 0:
		return epdDown.finding(words...)
	case !e.site.exists(socket):
		return socketGone.finding(append(words, "pid", strconv.Itoa(pid))...)
	}
	return unknownFinding("%v", err)
}

// isTimeout reports whether an error is that of a time that went by.
func isTimeout(err error) bool {
	var late interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout()
}

// unitName returns the unit of a part: that of one epd for both where it is installed.
func (e *examination) unitName(name string) string {
	for _, dir := range []string{"/etc/systemd/system/", "/usr/lib/systemd/system/", "/lib/systemd/system/"} {
		if e.site.exists(dir + name + ".service") {
			return name
		}
	}
	return "epd"
}

var socketOpen = &Fault{
	"socket-open", Bad, "{socket} has mode {mode}, but is for its owner alone",
	"others can use up epd's connections; it refuses their requests",
	Fix{Run: "chmod 600 {socket}"},
}

var socketForeign = &Fault{
	"socket-foreign", Bad, "{dir}, where hooks look for epd's socket, belongs to user {uid}",
	"that user can put a false socket there, which hooks and epplan restore would trust",
	Fix{Run: "chown root {dir}    # and restart {unit}, which has a folder of its own"},
}

var socketClosed = &Fault{
	"socket-closed", Bad, "{socket} has mode {mode}: Slurm's user and others can't ask there",
	"epd isn't told of submissions, and users can't see their jobs",
	Fix{Run: "chmod 666 {socket}"},
}

var socketFolder = &Fault{
	"socket-folder", Bad, "{dir} has mode {mode}: only its owner can pass",
	"Slurm's user can't reach the socket: epd isn't told of submissions",
	Fix{Run: "chmod 755 {dir}"},
}

var publicGone = &Fault{
	"submit-socket-missing", Bad, "{socket} isn't there",
	"epd isn't told of submissions, and users can't ask about their jobs",
	Fix{
		Run: "systemctl edit {unit}    # ExecStart must have --submit-socket {socket}; then " +
			"systemctl restart {unit}",
	},
}

func checkSockets(ctx context.Context, e *examination) []Finding {
	const private, public = 0o077, 0o666
	var found []Finding
	var seen, closed []string
	if e.role != Head {
		socket := e.options.agentSocket()
		closed = append(closed, socket)
		if info, err := e.site.Files.Stat(path.Dir(socket)); err == nil && info.UID != 0 {
			found = append(found, socketForeign.finding("dir", hooks.ShellQuote(path.Dir(socket)), "uid",
				strconv.FormatUint(uint64(info.UID), 10), "unit", e.unitName("epd-agent"))...)
		}
	}
	if e.role != Node && (e.options.AgentSocket == "" || e.options.ControllerSocket != "") {
		closed = append(closed, e.options.controllerSocket())
	}
	for _, socket := range closed {
		info, err := e.site.Files.Stat(socket)
		if err != nil {
			continue // the check of epd says so
		}
		seen = append(seen, socket+" is for root and Slurm's user")
		if info.Mode.Perm()&private != 0 {
			found = append(found, socketOpen.finding("socket", hooks.ShellQuote(socket), "mode", octal(info.Mode))...)
		}
	}
	if e.role == Node {
		return orOK(found, "%s", cmp.Or(strings.Join(seen, ", "), "there is none"))
	}
	socket := e.submitSocket(ctx)
	info, err := e.site.Files.Stat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, down := e.headStatus(ctx); down != nil {
			return append(found,
				unknownFinding("%s isn't there, and no epd answers that would listen there", socket)...)
		}
		return append(found, publicGone.finding("socket", socket, "unit", e.unitName("epd-controller"))...)
	case err != nil:
		return append(found, unknownFinding("%v", err)...)
	case info.Mode.Perm()&public != public:
		found = append(found, socketClosed.finding("socket", hooks.ShellQuote(socket), "mode", octal(info.Mode))...)
	}
	dir := path.Dir(socket)
	if info, err := e.site.Files.Stat(dir); err == nil && info.Mode.Perm()&0o001 == 0 {
		found = append(found, socketFolder.finding("dir", hooks.ShellQuote(dir), "mode", octal(info.Mode))...)
	}
	return orOK(found, "%s", strings.Join(append(seen, socket+" is for everybody"), ", "))
}

func octal(mode fs.FileMode) string { return "0" + strconv.FormatUint(uint64(mode.Perm()), 8) }

var versionsDiffer = &Fault{
	"version-skew", Warn, "{versions}",
	"messages are for one release: what another doesn't know is left out",
	Fix{Run: "systemctl restart {unit}    # after installing the same packages everywhere"},
}

func checkVersions(ctx context.Context, e *examination) []Finding {
	versions := []string{"epplan " + cmp.Or(e.options.Version, "unknown")}
	add := func(name string, s *epdapi.Status, err error) {
		if err == nil {
			versions = append(versions, name+" "+s.Version)
		}
	}
	agent, noAgent := e.agentStatus(ctx)
	if e.role != Head {
		add("agent", agent, noAgent)
	}
	if e.role != Node {
		head, err := e.headStatus(ctx)
		add("controller", head, err)
	}
	if e.role != Head && noAgent == nil && agent.Health != nil {
		for _, address := range agent.Health.Controllers {
			ctx, cancel := context.WithTimeout(ctx, epdTimeout)
			by := proofOf(agent.Health)
			by.MungeSocket = cmp.Or(e.options.MungeSocket, by.MungeSocket)
			s, _, err := e.site.Remote(ctx, address, by)
			cancel()
			add("controller at "+address, s, err)
		}
	}
	if len(versions) == 1 {
		return unknownFinding("no epd tells its version")
	}
	text := strings.Join(versions, ", ")
	word := func(v string) string { return v[strings.LastIndex(v, " ")+1:] }
	if slices.ContainsFunc(versions, func(v string) bool { return word(v) != word(versions[0]) }) {
		return versionsDiffer.finding("versions", text, "unit", e.unitName("epd-agent"))
	}
	return okFinding("%s", text)
}

var configWrong = &Fault{
	"config-wrong", Bad, "{error}",
	"epd keeps its configuration, and doesn't start with this one",
	Fix{Run: "{program} config check {file}    # names every fault; then: epplan reload"},
}

var configMissing = &Fault{
	"config-missing", Bad, "{file} isn't there",
	"epd keeps its configuration, and doesn't start without one",
	Fix{Run: "{program} config init {file}"},
}

var configClosed = &Fault{
	"config-unreadable", Bad, "{file} has mode {mode} and owner {owner}: epd's user {uid} can't read it",
	"epd doesn't start, and epplan reload fails",
	Fix{Run: "chmod 644 {file}"},
}

var configStale = &Fault{
	"config-stale", Warn, "{file} was changed since it was read",
	"the changes don't count yet",
	Fix{Run: "{program} reload --socket {socket}"},
}

var configDoubtful = &Fault{
	"config-doubtful", Warn, "{warning}",
	"epd uses the file as it is, which is hardly intended",
	Fix{Run: "{program} config check {file}    # names every doubt; then: epplan reload"},
}

func checkConfig(ctx context.Context, e *examination) []Finding {
	path := e.configPath(ctx)
	if path == "" {
		return okFinding("epd runs without a configuration: every partition is observed")
	}
	words := []string{"file", hooks.ShellQuote(path), "program", e.options.program()}
	c, err := e.epdConfig(ctx)
	if _, wrong := errors.AsType[*config.FileError](err); wrong {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return configWrong.finding(append(words, "error", first)...)
	}
	status, controller, asked := e.controllerStatus(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.options.Config == "" && asked != nil:
		return unknownFinding("%s isn't there, and no epd says which file it reads", path)
	case errors.Is(err, fs.ErrNotExist):
		return configMissing.finding(words...)
	case err != nil:
		return unknownFinding("%v", err)
	case asked != nil:
		return okFinding("%s is right; what is in force isn't known: %v", path, asked)
	}
	if info, err := e.site.Files.Stat(path); err == nil && status.Health != nil && status.Health.UID != 0 &&
		info.Mode.Perm()&0o004 == 0 && (info.UID != status.Health.UID || info.Mode.Perm()&0o400 == 0) {
		return configClosed.finding(append(words, "mode", octal(info.Mode), "owner", strconv.Itoa(int(info.UID)),
			"uid", strconv.Itoa(int(status.Health.UID)))...)
	}
	text, err := e.site.Files.Read(path)
	if err == nil && config.Digest([]byte(text)) != controller.ConfigVersion {
		return configStale.finding(append(words, "socket", hooks.ShellQuote(e.options.adminSocket()))...)
	}
	doubts := c.Warnings()
	if e.site.Slurm != nil {
		if nodes, err := e.slurmNodes(ctx); err == nil {
			doubts = append(doubts, c.UnknownNames(config.NamesIn(nodes))...)
		}
	}
	for _, warning := range controller.ConfigWarnings { // what is over since it was read
		doubts = append(doubts, errors.New(warning))
	}
	if len(doubts) > 0 {
		return configDoubtful.finding(append(words, "warning", doubts[0].Error())...)
	}
	return okFinding("%s; %s; a job may run up to %v times as long as at default clocks (max_slowdown)", path,
		modesText(&c.Live), c.Live.MostSlowdown())
}

func modesText(l *config.Live) string {
	var b strings.Builder
	b.WriteString("mode " + string(l.Mode))
	for _, name := range slices.Sorted(maps.Keys(l.Modes)) {
		b.WriteString(", " + string(l.Modes[name]) + " in " + name)
	}
	return b.String()
}
