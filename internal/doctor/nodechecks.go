package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/statedir"
)

var gpusNone = &Fault{
	"gpus-none", Bad, "epd sees no GPU on this machine", "no clock is set here",
	Fix{Run: "nvidia-smi -L    # the driver must list them; then systemctl restart {unit}"},
}

var gpuStuck = &Fault{
	"gpu-stuck", Bad, "the driver of {gpu} doesn't answer", "its clocks can't be set or restored",
	Fix{Run: "nvidia-smi -i {gpu} -q    # if that hangs too, drain the node and reboot it"},
}

var gpuLost = &Fault{
	"gpu-lost", Bad, "{gpu} fell off the bus",
	"its clocks are restored when it is back; the others are served",
	Fix{Run: "journalctl -k -g NVRM    # why; then reset it (nvidia-smi -i {gpu} -r) or reboot the node"},
}

var gpuNumbers = &Fault{
	"gpu-numbers", Bad, "it isn't certain which GPUs Slurm's numbers mean: {error}",
	"no clock is set here, and no run recorded: it might be another job's GPU",
	Fix{
		Run: "slurmd -G; nvidia-smi -L    # fix gres.conf, or give epd the UUIDs in slurmd's order: " +
			"--gpu-order GPU-…,GPU-…",
	},
}

var gpuRefused = &Fault{
	"gpu-permission", Bad, "the driver doesn't let epd lock the clocks of {gpu}: {error}",
	"its jobs run at default clocks",
	Fix{
		Run: "systemctl show {unit} -p User -p CapabilityBoundingSet    # epd must run as root with " +
			"CAP_SYS_ADMIN; then systemctl restart {unit}",
	},
}

var gpuForeignClocks = &Fault{
	"gpu-alien", Warn, "somebody else seems to set the clocks of {gpu}: {error}", "epd leaves it alone",
	Fix{
		Run: "nvidia-smi -i {gpu} -rgc -rmc    # after switching off the tool or script that sets them",
	},
}

var gpuUnsure = &Fault{
	"gpu-unsure", Warn, "{gpu}: {error}",
	"it may be epd's or the site's: the files that tell couldn't be read, and epd doesn't touch it",
	Fix{
		Run: "nvidia-smi -i {gpu} -q -d POWER    # then set the site's limit, such as nvidia-smi -i {gpu} " +
			"-pl 250",
	},
}

// checkGPUs looks at what epd says of this machine's GPUs. No clock is tried.
func checkGPUs(ctx context.Context, e *examination) []Finding {
	s, err := e.agentStatus(ctx)
	if err != nil {
		return unknownFinding("only epd looks at GPUs, and it doesn't answer: %v", err)
	}
	unit := e.unitName("epd-agent")
	if len(s.GPUs) == 0 {
		return gpusNone.finding("unit", unit)
	}
	var found []Finding
	for i := range s.GPUs {
		g := &s.GPUs[i]
		words := []string{"gpu", g.UUID, "unit", unit}
		switch {
		case g.Lost:
			found = append(found, gpuLost.finding(words...)...)
		case g.Stuck:
			found = append(found, gpuStuck.finding(words...)...)
		case g.Refused != "":
			found = append(found, gpuRefused.finding(append(words, "error", g.Refused)...)...)
		case g.ExternalChange != "":
			found = append(found, gpuForeignClocks.finding(append(words, "error", g.ExternalChange)...)...)
		case g.Unsure != "":
			found = append(found, gpuUnsure.finding(append(words, "error", g.Unsure)...)...)
		}
	}
	numbered := ""
	switch n := s.Numbering; {
	case n == nil:
	case n.Trouble != "":
		found = append(found, gpuNumbers.finding("error", n.Trouble)...)
	default:
		numbered = "; Slurm's numbers by " + n.By
	}
	return orOK(found, "%d GPUs; none is known to refuse a lock%s", len(s.GPUs), numbered)
}

var gpuPersistence = &Fault{
	"gpu-persistence", Warn, "persistence mode is off: {gpus}",
	"idle GPUs take seconds to open, eight of them half a minute: jobs that start meanwhile begin at " +
		"default clocks",
	Fix{
		Run: "systemctl enable --now nvidia-persistenced    # or nvidia-smi -pm 1 at each boot",
	},
}

// nvidiaSMI is the driver's own program.
const nvidiaSMI = "nvidia-smi"

// checkPersistence asks the driver's own program, as it is of the driver and no matter of epd's.
func checkPersistence(ctx context.Context, e *examination) []Finding {
	said, err := e.site.Run(ctx, nvidiaSMI, "--query-gpu=uuid,persistence_mode", "--format=csv,noheader")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return skipFinding("there is no %s here", nvidiaSMI)
	case err != nil:
		return unknownFinding("%s: %v", nvidiaSMI, err)
	}
	gpus, off := 0, []string(nil)
	for line := range strings.Lines(said) {
		uuid, mode, ok := strings.Cut(strings.TrimSpace(line), ",")
		if !ok {
			continue
		}
		gpus++
		if strings.EqualFold(strings.TrimSpace(mode), "Disabled") {
			off = append(off, uuid)
		}
	}
	if len(off) > 0 {
		return gpuPersistence.finding("gpus", shortList(off))
	}
	return okFinding("persistence mode of %d GPUs is on, or they have none", gpus)
}

var lockOrphaned = &Fault{
	"lock-without-run", Bad, "{gpus} locked, and no run of a job holds it",
	"programs there are slowed for nothing",
	Fix{Run: "{program} restore --socket {socket} --journal {journal}"},
}

var journalOrphaned = &Fault{
	"journal-left", Bad, "epd doesn't run, and its journal has {count} entries: these GPUs may be locked",
	"programs there are slowed, and nobody restores the clocks",
	Fix{Run: "{program} restore --socket {socket} --journal {journal}"},
}

func checkJournal(ctx context.Context, e *examination) []Finding {
	journal := filepath.Join(e.agentStateFolder(ctx), journalFolder)
	words := []string{
		"program", e.options.program(), "socket", hooks.ShellQuote(e.options.agentSocket()),
		"journal", hooks.ShellQuote(journal),
	}
	entries := e.site.Files.Glob(filepath.Join(journal, "*.json"))
	s, err := e.agentStatus(ctx)
	if err != nil {
		if _, readable := e.site.Files.Stat(journal); readable != nil {
			return unknownFinding("epd doesn't answer, and its journal can't be seen: %v", readable)
		}
		if pid, err := e.site.lockHolder(e.agentStateFolder(ctx), "agent"); err != nil || pid != 0 {
			return unknownFinding("epd doesn't answer: %v", err)
		}
		if len(entries) > 0 {
			return journalOrphaned.finding(append(words, "count", strconv.Itoa(len(entries)))...)
		}
		return okFinding("the journal is empty: no clock is locked")
	}
	locked, orphans := unneededLocks(s, entries)
	if len(orphans) > 0 {
		return lockOrphaned.finding(append(words, "gpus", shortList(orphans))...)
	}
	return okFinding("%d GPUs locked, each for a run", locked)
}

// unneededLocks counts locks, and names the GPUs that are locked, or in the journal,
// and no run's.
func unneededLocks(s *epdapi.Status, entries []string) (locked int, orphans []string) {
	held := make(map[string]bool)
	for i := range s.Runs {
		for _, uuid := range s.Runs[i].GPUs {
			held[uuid] = held[uuid] || !s.Runs[i].Ended
		}
	}
	for i := range s.GPUs {
		if g := &s.GPUs[i]; g.IsLocked() {
			locked++
			if !held[g.UUID] {
				orphans = append(orphans, g.UUID)
			}
		}
	}
	for _, path := range entries { // of a GPU that is gone, or of a process that died
		if uuid := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)); !held[uuid] &&
			!slices.Contains(orphans, uuid) {
			orphans = append(orphans, uuid)
		}
	}
	return locked, orphans
}

// When outcomes wait for too long, and how much the spool holds (its bound is
// 64 MiB).
const (
	maxSpoolAge   = 15 * time.Minute
	maxSpoolBytes = 56 << 20
)

var spoolOld = &Fault{
	"spool-old", Bad, "{count} outcomes wait in {dir}, the oldest for {age}",
	"the controller doesn't take them: nothing is learnt from this node's jobs",
	Fix{
		Run: "{program} doctor --only controller-link,controller,store    # shows why; nothing is lost meanwhile",
	},
}

var spoolFull = &Fault{
	"spool-full", Bad, "the spool {dir} has {size} MiB of 64",
	"further outcomes are kept only in their runs' files",
	Fix{
		Run: "{program} doctor --only controller-link,controller,store    # shows why",
	},
}

var spoolAside = &Fault{
	"spool-aside", Warn, "{count} outcomes were refused for good: {dir}/aside",
	"savings and models miss their jobs",
	Fix{Run: "ls -l {dir}/aside    # epd's log says why; then remove them"},
}

// checkSpool looks at the files of the spool: epd need not answer.
func checkSpool(ctx context.Context, e *examination) []Finding {
	dir := filepath.Join(e.agentStateFolder(ctx), "spool")
	if _, err := e.site.Files.Stat(dir); err != nil {
		return unknownFinding("%v", err)
	}
	now := e.site.Now()
	oldest, size := now, int64(0)
	entries := e.site.Files.Glob(filepath.Join(dir, "*.entry"))
	for _, path := range entries {
		if info, err := e.site.Files.Stat(path); err == nil {
			size += info.Size
			if info.At.Before(oldest) {
				oldest = info.At
			}
		}
	}
	aside := e.site.Files.Glob(filepath.Join(dir, "aside", "*"))
	words := []string{
		"dir", hooks.ShellQuote(dir), "program", e.options.program(), "size", strconv.FormatInt(size>>20, 10),
		"age", now.Sub(oldest).Round(time.Minute).String(),
	}
	var found []Finding
	if now.Sub(oldest) >= maxSpoolAge {
		found = append(found, spoolOld.finding(append(words, "count", strconv.Itoa(len(entries)))...)...)
	}
	if size >= maxSpoolBytes {
		found = append(found, spoolFull.finding(words...)...)
	}
	if len(aside) > 0 {
		found = append(found, spoolAside.finding(append(words, "count", strconv.Itoa(len(aside)))...)...)
	}
	return orOK(found, "%d outcomes wait in %s", len(entries), dir)
}

// Space below which little, or nothing, can be written.
const (
	minRoomWarn = 1 << 30
	minRoomBad  = 100 << 20
)

var diskLow = &Fault{
	"disk-low", Warn, "the disk of {dir} has {free} MiB left", "records grow with every job",
	Fix{Run: "df -h {dir}    # make room, or shorten what epd keeps"},
}

var diskFull = &Fault{
	"disk-full", Bad, "the disk of {dir} has {free} MiB left",
	"neither journal nor records can be written: jobs run at default clocks",
	Fix{Run: "df -h {dir}    # make room"},
}

func (e *examination) stateFolders(ctx context.Context) []string {
	var all []string
	if e.role != Head {
		all = append(all, e.agentStateFolder(ctx))
	}
	if dir := e.controllerState(ctx); e.role != Node && !slices.Contains(all, dir) {
		all = append(all, dir)
	}
	return all
}

func checkDisk(ctx context.Context, e *examination) []Finding {
	var found []Finding
	var said []string
	for _, dir := range e.stateFolders(ctx) {
		free, _, err := e.site.Files.FreeSpace(dir)
		mib := strconv.FormatUint(free>>20, 10)
		switch {
		case err != nil:
			found = append(found, unknownFinding("%s: %v", dir, err)...)
		case free < minRoomBad:
			found = append(found, diskFull.finding("dir", hooks.ShellQuote(dir), "free", mib)...)
		case free < minRoomWarn:
			found = append(found, diskLow.finding("dir", hooks.ShellQuote(dir), "free", mib)...)
		default:
			said = append(said, fmt.Sprintf("%s MiB for %s", mib, dir))
		}
	}
	return orOK(found, "%s", strings.Join(said, ", "))
}

var stateOpen = &Fault{
	"state-open", Bad, "{dir} has mode {mode}: others can write there, or read what users ran",
	"whoever writes the journal can have clocks set",
	Fix{Run: "chmod 700 {dir}"},
}

var stateOwner = &Fault{
	"state-owner", Bad, "{dir} belongs to user {owner}, and epd runs as {uid}",
	"epd can't write its journal and records",
	Fix{Run: "chown -R {uid} {dir}"},
}

var stateRefused = &Fault{
	"state-refused", Bad, "epd doesn't use {dir}: {path} {what}",
	"others could change clocks and Slurm's queue by files there",
	Fix{Run: "ls -ld {path}    # to mend it: {mend}"},
}

// checkState looks at the modes of the state folders and of what is in them, and
// whether epd uses them.
func checkState(ctx context.Context, e *examination) []Finding {
	uids := make(map[string]uint32)
	for _, ask := range []func(context.Context) (*epdapi.Status, error){e.agentStatus, e.headStatus} {
		if h := e.epdHealth(ctx, ask); h.State != "" {
			uids[h.State] = h.UID
		}
	}
	var found []Finding
	var said []string
	for _, dir := range e.stateFolders(ctx) {
		uid, known := uids[dir]
		// Also an agent that doesn't run is root's.
		certain := known || e.role != Head && dir == e.agentStateFolder(ctx)
		for _, sub := range []string{"", journalFolder, "runs", "spool"} {
			path := filepath.Join(dir, sub)
			info, err := e.site.Files.Stat(path)
			if err != nil {
				if sub == "" {
					found = append(found, unknownFinding("%v", err)...)
				}
				continue
			}
			if !certain { // a controller's that doesn't run: nobody says as which user it would
				uid = info.UID
			}
			wrong := e.checkFolder(path, sub == "", &info, uid)
			if found = append(found, wrong...); sub == "" && len(wrong) == 0 {
				said = append(said, fmt.Sprintf("%s, mode %s", path, octal(info.Mode)))
			}
		}
	}
	return orOK(found, "%s", strings.Join(said, ", "))
}

// checkFolder returns what is wrong about a state folder, or one in it, of an epd of a
// user.
func (e *examination) checkFolder(path string, state bool, info *Info, uid uint32) []Finding {
	dir := hooks.ShellQuote(path)
	switch perm := info.Mode.Perm(); {
	case perm&0o077 != 0 && state || perm&0o022 != 0:
		return stateOpen.finding("dir", dir, "mode", octal(info.Mode))
	case uid != 0 && info.UID != uid:
		return stateOwner.finding("dir", dir, "owner", strconv.Itoa(int(info.UID)), "uid",
			strconv.Itoa(int(uid)))
	}
	bad, ok := errors.AsType[*statedir.InsecureError](e.site.Files.CheckTrust(path, uid))
	if !ok {
		return nil
	}
	return stateRefused.finding("dir", dir, "path", hooks.ShellQuote(bad.Path), "what", bad.What,
		"mend", bad.Mend)
}
