package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
)

var storeDamaged = &Fault{
	"store-damaged", Bad, "the records are damaged: {error}",
	"decisions and models may be wrong, and what is written may be lost",
	Fix{
		Run: "systemctl restart {unit}    # it moves {file} aside and begins anew; with a backup instead: " +
			"systemctl stop {unit}; " +
			"rm -f {file}-wal {file}-shm; cp BACKUP {file}; systemctl start {unit}",
	},
}

var storeMoved = &Fault{
	"store-moved", Bad, "{file} was removed or replaced while epd uses it: {error}",
	"nothing is recorded: outcomes wait on the nodes, and jobs run at default clocks",
	Fix{
		Run: "systemctl restart {unit}    # it uses what is at {file}, or begins anew; put a backup there " +
			"while epd is stopped",
	},
}

var storeTrouble = &Fault{
	"store-trouble", Bad, "epd can't write its records: {error}",
	"outcomes wait on the nodes, and decisions are not kept",
	Fix{Run: "df -h {dir}; ls -ld {dir} {file}    # room, and epd's user as the owner"},
}

var storeLost = &Fault{
	"store-lost", Warn, "{count} records were lost since epd began",
	"tables and savings miss these jobs",
	Fix{Run: "journalctl -u {unit} | grep -i record    # why"},
}

// checkStore asks epd how writing goes, and has its own program check the file.
func checkStore(ctx context.Context, e *examination) []Finding {
	dir := e.controllerState(ctx)
	file := filepath.Join(dir, "records.db")
	words := []string{
		"unit", e.unitName("epd-controller"), "dir", hooks.ShellQuote(dir), "file", hooks.ShellQuote(file),
	}
	var found []Finding
	_, gone := e.site.Files.Stat(file)
	if _, c, err := e.controllerStatus(ctx); err == nil {
		switch {
		case c.Moved:
			found = append(found, storeMoved.finding(append(words, "error", c.Trouble)...)...)
		// Epd looks less often.
		case errors.Is(gone, fs.ErrNotExist) && e.epdHealth(ctx, e.headStatus).State == dir:
			found = append(found, storeMoved.finding(append(words, "error", gone.Error())...)...)
		case c.Trouble != "":
			found = append(found, storeTrouble.finding(append(words, "error", c.Trouble)...)...)
		}
		if c.Lost > 0 {
			found = append(found, storeLost.finding(append(words, "count", strconv.FormatInt(c.Lost, 10))...)...)
		}
	}
	if gone != nil {
		return append(found, unknownFinding("%v", gone)...)
	}
	said, err := e.site.Run(ctx, cmp.Or(e.options.EPDProgram, "epd"), "db", "check", "--state", dir)
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed && strings.TrimSpace(said) != "": // what is damaged
		first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
		found = append(found, storeDamaged.finding(append(words, "error", first)...)...)
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return append(found, unknownFinding("epd db check isn't done in time: run it by hand")...)
	case err != nil:
		return append(found, unknownFinding("epd db check: %v", err)...)
	}
	return orOK(found, "%s is sound", file)
}

var suspectedLimit = &Fault{
	"suspected-limit", Warn, "busy GPUs of {nodes} are never above {clock} MHz, and epd holds no lock there",
	"epd leaves jobs there alone until the configuration says whether the site limits clocks",
	Fix{
		Run: "epplan reload    # after configuring [live.site_clocks] {line}, or the model's highest clock " +
			"if the site has no limit",
	},
}

// checkSiteClocks looks whether there are nodes that somebody else seems to hold down.
func checkSiteClocks(ctx context.Context, e *examination) []Finding {
	_, c, err := e.controllerStatus(ctx)
	if err != nil {
		return unknownFinding("%v", err)
	}
	var found []Finding
	nodes := make(map[epdapi.SuspectedLimit][]string)
	for _, s := range c.Suspected {
		node := s.Node
		s.Node = ""
		nodes[s] = append(nodes[s], node)
	}
	for s, names := range nodes {
		found = append(found, suspectedLimit.finding("nodes", shortList(names), "clock",
			fmt.Sprint(float64(s.Core)),
			"line", fmt.Sprintf("%s = %v", s.GPUModel, float64(s.Core)))...)
	}
	return orOK(found, "nobody else seems to hold GPUs down")
}

var syncFails = &Fault{
	"slurm-sync", Bad, "epd's last {count} queries to Slurm about {what} failed: {error}",
	"it decides by old data, and steers nothing",
	Fix{Run: "scontrol ping    # as epd's user; then see the findings about Slurm and munge"},
}

var slurmUnread = &Fault{
	"slurm-unread", Warn, "{count} records of Slurm's {what} can't be read: {error}",
	"these {what} run at default clocks and aren't steered",
	Fix{Run: "scontrol show job    # find the one that is named, and report it"},
}

var foreignComments = &Fault{
	"comment-foreign", Warn, "{count} jobs' AdminComment belongs to another tool, and stays as it is",
	"before 25.11 Slurm's accounting lacks their energies; if it is set at submission, they go by their names",
	Fix{
		Run: "epplan config check    # account_energy = \"off\" if the other tool writes energies; else keep " +
			"its text elsewhere",
	},
}

func checkSync(ctx context.Context, e *examination) []Finding {
	_, c, err := e.controllerStatus(ctx)
	if err != nil {
		return unknownFinding("%v", err)
	}
	const often = 3
	var found []Finding
	for _, s := range []struct {
		what string
		sync *epdapi.SyncStatus
	}{{"jobs", &c.Queue}, {"nodes", &c.Nodes}} {
		if s.sync.Failures >= often {
			found = append(found, syncFails.finding("count", strconv.Itoa(s.sync.Failures), "what", s.what,
				"error", s.sync.Trouble)...)
		}
		if s.sync.Unread > 0 {
			found = append(found, slurmUnread.finding("count", strconv.Itoa(s.sync.Unread), "what", s.what,
				"error", s.sync.UnreadReason)...)
		}
	}
	if c.ForeignComments > 0 {
		found = append(found, foreignComments.finding("count", strconv.FormatInt(c.ForeignComments, 10))...)
	}
	if len(found) == 0 && c.Queue.At.IsZero() {
		return unknownFinding("epd hasn't heard of Slurm's jobs yet")
	}
	return orOK(found, "epd knows of %d jobs", c.Jobs)
}

var recentTrouble = &Fault{
	"trouble", Warn, "epd says, at {at}: {error}", "something went wrong on this node",
	Fix{Run: "{program} status --socket {socket}"},
}

func checkTrouble(ctx context.Context, e *examination) []Finding {
	s, err := e.agentStatus(ctx)
	switch {
	case err != nil:
		return unknownFinding("%v", err)
	case len(s.Troubles) == 0:
		return okFinding("nothing went wrong since epd began")
	}
	t := s.Troubles[len(s.Troubles)-1]
	return recentTrouble.finding("at", t.At.Local().Format("2006-01-02 15:04"), "error", t.Message,
		"program", e.options.program(), "socket", hooks.ShellQuote(e.options.agentSocket()))
}

var unitFailed = &Fault{
	"unit-failed", Bad, "systemd's {unit} failed", "epd doesn't run",
	Fix{
		Run: "journalctl -u {unit} -n 50    # why; then systemctl reset-failed {unit} && " +
			"systemctl start {unit}",
	},
}

var unitDisabled = &Fault{
	"unit-disabled", Warn, "{unit} isn't enabled", "epd doesn't come back after a boot",
	Fix{Run: "systemctl enable {unit}"},
}

var unitNone = &Fault{
	"unit-missing", Warn, "no unit of epd is installed", "nothing starts epd after a boot or a crash",
	Fix{Run: "systemctl enable --now epd    # after installing the package"},
}

func checkUnits(ctx context.Context, e *examination) []Finding {
	if !e.site.exists("/run/systemd/system") {
		return skipFinding("systemd doesn't run here")
	}
	var found []Finding
	var said []string
	for _, unit := range []string{"epd", "epd-agent", "epd-controller"} {
		text, err := e.site.Run(ctx, "systemctl", "show", "--property=LoadState,ActiveState,UnitFileState",
			unit+".service")
		if err != nil {
			return unknownFinding("systemctl: %v", err)
		}
		state := make(map[string]string)
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			state[key] = value
		}
		switch {
		case state["LoadState"] != "loaded":
			continue
		case state["ActiveState"] == "failed":
			found = append(found, unitFailed.finding("unit", unit)...)
		case state["UnitFileState"] == "disabled" && state["ActiveState"] == "active":
			found = append(found, unitDisabled.finding("unit", unit)...)
		}
		said = append(said, fmt.Sprintf("%s is %s and %s", unit, state["ActiveState"],
			cmp.Or(state["UnitFileState"], "static")))
	}
	if len(said) == 0 {
		found = append(found, unitNone.finding()...)
	}
	return orOK(found, "%s", strings.Join(said, ", "))
}
