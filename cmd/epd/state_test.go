package main

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/amdgputest"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

// stranger is a user whom nobody knows.
const stranger = 4711

// givesFiles skips a test where files can't be given to a stranger.
func givesFiles(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused runs an epd that isn't to come as far as answering, and returns what it
// says.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var out, log text
	if code := run(ctx, append([]string{"epd"}, args...), &out, &log); code != exitFailed ||
		ctx.Err() != nil {
		t.Errorf("epd %q: status %d, %v: %s", args, code, ctx.Err(), &log)
	}
	return log.String()
}

// everywhere lists a folder with what is below.
func everywhere(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		found = append(found, path)
		return err
	}))
	return found
}

func TestAStateFolderOfSomebodyElseIsRefusedAndNothingIsTouched(t *testing.T) {
	givesFiles(t)
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	must(t, os.Mkdir(state, 0o700))
	for name, to := range map[string]string{"agent.lock": "X", "controller.lock": "X", "records.db": "Y"} {
		must(t, os.Symlink(filepath.Join(dir, to), filepath.Join(state, name)))
		must(t, os.Lchown(filepath.Join(state, name), stranger, stranger))
	}
	must(t, os.Chown(state, stranger, stranger))
	before := everywhere(t, dir)
	flags := []string{
		"--gpu", "sim:2", "--slurm", "off", "--state", state, "--socket", filepath.Join(dir, "epd.sock"),
	}
	want := state + " belongs to user 4711, want root; to mend it: "
	for _, args := range [][]string{
		flags, append([]string{"agent", "--controller", "127.0.0.1:1"}, flags...),
		append([]string{"controller", "--listen", "127.0.0.1:0"}, flags...),
		append([]string{"--dry-run"}, flags...),
		{"work", "--gpu", "sim:2", "--state", state},
		{"restore", "--gpu", "sim:2", "--state", state},
	} {
		if said := refused(t, args...); strings.Count(said, want) != 1 {
			t.Errorf("epd %q says %s", args, said)
		}
	}
	if after := everywhere(t, dir); !slices.Equal(after, before) {
		t.Errorf("%q, before %q", after, before)
	}
}

func TestAStateFolderThatOthersMayWriteToIsRefused(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	must(t, os.Mkdir(state, 0o700))
	must(t, os.Chmod(state, 0o775))
	args := []string{
		"--gpu", "sim:2", "--slurm", "off", "--state", state, "--socket", filepath.Join(dir, "epd.sock"),
	}
	said := refused(t, args...)
	if !strings.Contains(said, state+" has mode 0775, want 0755: others may ") ||
		strings.Count(said, "chmod go-w "+state) != 1 {
		t.Error(said)
	}
	must(t, os.Chmod(state, 0o755))
	_, stop := start(t, dir)
	if code, log := stop(); code != exitDone {
		t.Errorf("status %d: %s", code, log)
	}
}

func TestWhatSomebodyElseLaidIntoAStateFolderIsRefused(t *testing.T) {
	givesFiles(t)
	storetest.NeedSQLite(t)
	for _, name := range []string{
		"agent.lock", "controller.lock", "records.db", "records.db-wal", "seed", "journal", "runs", "spool",
		"sim", "sim/sim-gpus.json", "sim/sim-gpus.json.new",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			outside, path := filepath.Join(dir, "outside"), filepath.Join(dir, "state", name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.Symlink(outside, path))
			must(t, os.Lchown(path, stranger, stranger))
			args := []string{
				"--gpu", "sim:2", "--slurm", "off", "--state", filepath.Join(dir, "state"), "--socket",
				filepath.Join(dir, "epd.sock"),
			}
			if said := refused(t, args...); !strings.Contains(said, path+" is a symbolic link") ||
				!strings.Contains(said, "rm "+path) {
				t.Error(said)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("what the link leads to was made")
			}
		})
	}
}

func TestByAJournalOfSomebodyElseClocksAreGivenBackAndNothingIsChanged(t *testing.T) {
	givesFiles(t)
	give := func(path string) { must(t, os.Lchown(path, stranger, stranger)) }
	for name, lay := range map[string]func(t *testing.T, journal, entry string){
		"its files too": func(_ *testing.T, journal, entry string) { give(journal); give(entry) },
		"its folder":    func(_ *testing.T, journal, _ string) { give(journal) },
		"open to all": func(t *testing.T, journal, _ string) {
			t.Helper()
			must(t, os.Chmod(journal, 0o777))
		},
		"a link": func(t *testing.T, journal, _ string) {
			t.Helper()
			must(t, os.Rename(journal, journal+".moved"))
			must(t, os.Symlink(journal+".moved", journal))
			give(journal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, sim := crashed(t)
			other := otherThan(t, state, sim)
			must(t, other.Set(gpu.CoreClock, 945)) // by somebody else: the journal doesn't name it
			journal := filepath.Join(state, "journal")
			writeFile(t, filepath.Join(journal, "stray"), "x")
			lay(t, journal, filepath.Join(journal, sim.Identity().UUID+".json"))
			before := everywhere(t, state)
			said := refused(t, "restore", "--journal", journal, "--gpu", "sim:2", "--state", state)
			if !strings.Contains(said, "isn't epd's alone") || !strings.Contains(said, "to mend it:") {
				t.Error(said)
			}
			if f, err := sim.Held(gpu.CoreClock); err != nil || f != 0 {
				t.Errorf("locked at %v, error %v: %s", f, err, said)
			}
			if f, err := other.Held(gpu.CoreClock); err != nil || f != 945 {
				t.Errorf("the other GPU is locked at %v, error %v", f, err)
			}
			if after := everywhere(t, state); !slices.Equal(after, before) {
				t.Errorf("%q, before %q", after, before)
			}
			again := refused(t, "--gpu", "sim:2", "--slurm", "off", "--state", state, "--socket",
				filepath.Join(state, "epd.sock"))
			if strings.Count(again, "to mend it:") == 0 {
				t.Error(again)
			}
		})
	}
}

// otherThan returns the GPU of two that isn't the one given.
func otherThan(t *testing.T, state string, sim *gpu.Sim) *gpu.Sim {
	t.Helper()
	library, err := openSim("sim:2", state, nil)
	must(t, err)
	sims, err := library.Sims()
	must(t, err)
	return sims[slices.IndexFunc(sims, func(s *gpu.Sim) bool {
		return s.Identity().UUID != sim.Identity().UUID
	})]
}

func TestADryRunOfARestoreSaysThatTheJournalIsLeftAlone(t *testing.T) {
	state, sim := crashed(t)
	journal := filepath.Join(state, "journal")
	must(t, os.Chmod(journal, 0o777))
	var out, log text
	if code := run(t.Context(), []string{"epd", "restore", "--dry-run", "--journal", journal}, &out,
		&log); code != exitDone ||
		!strings.Contains(out.String(), "change nothing in the journal") ||
		!strings.Contains(out.String(), sim.Identity().UUID) {
		t.Errorf("status %d: %s%s", code, &out, &log)
	}
}

// asChild has the tests' program run epd with these arguments, and nothing else.
const asChild = "EPD_TEST_ARGUMENTS"

// childSysfs is the folder that such a program takes for the kernel's.
const childSysfs = "EPD_TEST_SYSFS"

// A process that gave up root doesn't get it back, so that this is a child's.
func TestEPDAsAChild(t *testing.T) {
	if line, ok := os.LookupEnv(asChild); ok {
		if root := os.Getenv(childSysfs); root != "" {
			kernel, err := amdgputest.Open(root)
			must(t, err)
			sysfs = kernel
		}
		itself = ownChild
		os.Exit(run(t.Context(), strings.Split(line, "\n"), os.Stdout, os.Stderr)) //nolint:revive // its exit status is epd's
	}
}

func TestRootActsAsTheControllersUserOnItsRecords(t *testing.T) {
	givesFiles(t)
	dir, err := os.MkdirTemp("", "epd") //nolint:usetesting // t.TempDir's folders are closed to other users
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	_, stop := start(t, dir)
	stop()
	state := filepath.Join(dir, "state")
	must(t, filepath.WalkDir(state, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, stranger, stranger))
	}))
	db := func(words ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEPDAsAChild$")
		cmd.Env = append(os.Environ(),
			asChild+"="+strings.Join(append([]string{"epd", "db", words[0], "--state", state},
				words[1:]...), "\n"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, words := range [][]string{{"check"}, {"export", "outcomes"}} {
		if out, err := db(words...); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("epd db %q: %v: %s", words, err, out)
		}
	}
	own := filepath.Join(dir, "roots")
	must(t, os.Mkdir(own, 0o700))
	if out, err := db("backup", filepath.Join(own, "copy")); err == nil ||
		!strings.Contains(out, "as user 4711, whose folder "+state+" is: ") {
		t.Errorf("a backup into a folder of root's: %v: %s", err, out)
	}
	must(t, os.Chown(own, stranger, stranger))
	if out, err := db("backup", filepath.Join(own, "copy")); err != nil {
		t.Errorf("a backup: %v: %s", err, out)
	}
	records := filepath.Join(state, "records.db")
	must(t, os.Rename(records, filepath.Join(own, "records.db")))
	must(t, os.Chown(filepath.Join(own, "records.db"), 0, 0))
	must(t, os.Symlink(filepath.Join(own, "records.db"), records))
	must(t, os.Lchown(records, stranger, stranger))
	if out, err := db("check"); err == nil || !strings.Contains(out, records+" is a symbolic link") {
		t.Errorf("records that are a link: %v: %s", err, out)
	}
}

func TestADamagedSeedIsDrawnAnew(t *testing.T) {
	for name, damaged := range map[string]string{
		"empty": "", "zeros": strings.Repeat("\x00", 17), "short": "3f2a\n",
		"no number": "sixteen letters!\n",
		"long":      strings.Repeat("0", 17), "huge": strings.Repeat("a", 1<<20),
	} {
		flags := map[string][]string{"both": nil}
		if name == "empty" {
			flags["controller"] = []string{"--role", "controller", "--listen", "127.0.0.1:0"}
		}
		for role, flags := range flags {
			t.Run(name+" "+role, func(t *testing.T) { drawsAnotherSeed(t, damaged, flags) })
		}
	}
}

// drawsAnotherSeed starts an epd on a damaged seed, twice.
func drawsAnotherSeed(t *testing.T, damaged string, flags []string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "state", "seed")
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	writeFile(t, path, damaged)
	writeFile(t, path+".damaged", "an earlier one")
	seeds := make([]string, 0, 2)
	for _, troubled := range []bool{true, false} {
		client, stop := start(t, dir, flags...)
		s, err := client.Status(t.Context())
		said := slices.ContainsFunc(s.Troubles, func(one epdapi.Problem) bool {
			return strings.Contains(one.Message, "the seed of the lots was damaged")
		})
		if err != nil || said != troubled {
			t.Errorf("troubles %+v, error %v", s.Troubles, err)
		}
		code, log := stop()
		if code != exitDone || strings.Contains(log, "level=ERROR") != troubled ||
			strings.Contains(log, path+".damaged-1") != troubled {
			t.Errorf("status %d: %s", code, log)
		}
		seed, err := os.ReadFile(path)
		must(t, err)
		seeds = append(seeds, string(seed))
	}
	if digits, err := hex.DecodeString(strings.TrimSpace(seeds[0])); err != nil || len(digits) != 8 ||
		seeds[1] != seeds[0] {
		t.Errorf("the seed is %q, then %q", seeds[0], seeds[1])
	}
	for file, want := range map[string]string{
		path + ".damaged":   "an earlier one",
		path + ".damaged-1": damaged,
	} {
		if kept, err := os.ReadFile(file); err != nil || string(kept) != want {
			t.Errorf("%s: %.40q, %v", file, kept, err)
		}
	}
}

// Somebody takes the lock's file for a stale one and removes it: no second epd gets the folder, and if one
// was faster, the first one ends.
func TestALockOfAStateFolderThatIsRemovedIsTakenAgain(t *testing.T) {
	renewLocks = 20 * time.Millisecond
	defer func() { renewLocks = 5 * time.Second }()
	dir := t.TempDir()
	d := launch(t, dir)
	path := filepath.Join(dir, "state", roleController+".lock")
	must(t, os.Remove(path))
	d.eventually("the lock is there again", func() bool {
		_, err := os.Lstat(path)
		return err == nil
	})
	if _, err := daemon.LockState(filepath.Dir(path), roleController); !errors.Is(err, daemon.ErrTaken) {
		t.Errorf("it is locked by nobody: %v", err)
	}
	for taken := false; !taken; {
		must(t, os.Remove(path))
		lock, err := daemon.LockState(filepath.Dir(path), roleController)
		if taken = err == nil; taken {
			defer lock.Release()
		}
	}
	d.eventually("epd ends", func() bool {
		return strings.Contains(d.log.String(), "another epd has the state folder")
	})
	if code := d.stop(); code != exitFailed {
		t.Errorf("status %d: %s", code, d.log)
	}
}
