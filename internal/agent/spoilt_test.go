package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/statedir"
)

// spoilings are what may become of a file under a running agent.
var spoilings = map[string]func(path string) error{
	"removed":   os.Remove,
	"emptied":   func(path string) error { return os.Truncate(path, 0) },
	"torn":      func(path string) error { return os.Truncate(path, 40) },
	"garbage":   func(path string) error { return os.WriteFile(path, []byte("\x00\xff not json"), 0o600) },
	"a newer's": func(path string) error { return os.WriteFile(path, []byte(`{"schema":9}`), 0o600) },
	"a folder": func(path string) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700), os.WriteFile(path+"/x", nil, 0o600))
	},
	"a link":    func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
	"another's": func(path string) error { return os.Chmod(path, 0o666) },
}

// afterwards is what may come to pass then, before the job ends.
var afterwards = map[string]func(h *host, a *agent.Agent) *agent.Agent{
	"nothing": func(_ *host, a *agent.Agent) *agent.Agent { return a },
	"a sweep": func(h *host, a *agent.Agent) *agent.Agent {
		_, _ = a.Sweep(h.t.Context(), alive, alive)
		return a
	},
	"another run": func(h *host, a *agent.Agent) *agent.Agent {
		apply(h, a, "r2", 2, quick, 0)
		end(a, 2)
		return a
	},
	"a restore": func(h *host, a *agent.Agent) *agent.Agent {
		_, _ = a.Restore(h.t.Context(), "by hand")
		return a
	},
	"a stop": func(h *host, a *agent.Agent) *agent.Agent {
		_, _ = a.Stop(h.t.Context())
		return a
	},
	"a start": func(h *host, _ *agent.Agent) *agent.Agent {
		next := h.agent(nil)
		_, _ = next.Start(h.t.Context())
		return next
	},
}

func TestAFileThatIsSpoiltUnderARunningAgentLeavesNothingSetAndRaisesNoLimit(t *testing.T) {
	for how, spoil := range spoilings {
		for file, name := range map[string]func(uuid string) string{
			"entry":    func(uuid string) string { return "journal/" + uuid + ".json" },
			"baseline": func(uuid string) string { return "journal/" + uuid + ".baseline" },
			"run":      func(string) string { return "runs/r1.json" },
		} {
			for then, follow := range afterwards {
				t.Run(strings.Join([]string{file, how, then}, ", "), func(t *testing.T) {
					h, dir := hostOnDisk(t)
					a := h.started()
					apply(h, a, "r1", 1, slow, 0)
					h.wantLocked(slow)
					if err := spoil(filepath.Join(dir, name(h.uuids[0]))); err != nil {
						t.Fatal(err)
					}
					a = follow(h, a)
					end(a, 1)
					_, _ = a.Sweep(t.Context(), ignoreMissing, ignoreMissing)
					h.wantAtSite(dir, "after the end")
					if got, err := a.Apply(t.Context(), h.run("next", 9, slow, 0)); err != nil || !got.Locked {
						t.Errorf("the next run: %+v, %v", got, err)
					}
					end(a, 9)
					h.wantAtSite(dir, "after the next run's end")
					if left := a.State().Runs; slices.ContainsFunc(left, func(r agent.RunState) bool { return !r.Ended }) {
						t.Errorf("left open: %+v", left)
					}
				})
			}
		}
	}
}

// hostOnDisk returns a host at a site's power limits whose journal and runs are in a folder.
func hostOnDisk(t *testing.T) (h *host, dir string) {
	t.Helper()
	h, dir = newHost(t, twoGPUs), t.TempDir()
	open := func(name string) *statedir.Folder {
		f, err := statedir.OpenFolder(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	h.options = func(o *agent.Options) { o.Journal, o.Runs, o.Grace = open("journal"), open("runs"), 1 }
	h.site = []dvfsmodel.Watt{200, 210}
	for i, w := range h.site {
		h.limit(i, w)
	}
	return h, dir
}

// wantAtSite fails unless the GPUs are free, at the site's limits, and in no entry.
func (h *host) wantAtSite(dir, when string) {
	h.t.Helper()
	h.wantLocked(free, free)
	h.wantLimits(when, h.site...)
	if left, err := filepath.Glob(dir + "/journal/*.json"); err != nil || len(left) > 0 {
		h.t.Errorf("%s: left in the journal: %v, %v", when, left, err)
	}
}

// Of a file that couldn't be cleared away half is done.
func TestADiskThatFailsAtARunsEndCostsTheNextRunNothingAfterASweep(t *testing.T) {
	const steps = 40
	for step := range steps {
		h, f := newHost(t, twoGPUs), &fuse{}
		a := h.agent(f)
		a.SettleOneByOne()
		if _, err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		apply(h, a, "r1", 1, slow, 0)
		f.fail, f.last = f.steps+step, f.steps+steps
		end(a, 1)
		f.fail = 0
		_, _ = a.Sweep(t.Context(), alive, alive)
		h.wantFree()
		if got, err := a.Apply(t.Context(), h.run("next", 9, slow, 0)); err != nil || !got.Locked {
			t.Errorf("after a failure at step %d: %+v, %v", step, got, err)
		}
	}
}
