package sweep

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
)

// slurmTimeout bounds each of Slurm's commands.
const slurmTimeout = time.Minute

// FindSlurm returns the Slurm whose commands are on the PATH; nil: there is none.
func FindSlurm() *slurm.Client {
	sbatch, err := exec.LookPath("sbatch")
	if err == nil {
		sbatch, err = filepath.Abs(sbatch)
	}
	if err != nil {
		return nil
	}
	return slurm.NewClient(slurm.ExecRunner{
		Dir: filepath.Dir(sbatch), Conf: os.Getenv("SLURM_CONF"), Timeout: slurmTimeout,
	}, slurmTimeout)
}

// ThisProgram returns the path of the program that runs, and its name in a manifest: with its
// version and the kind of machine, and with its own digest where the version doesn't
// say what is in it.
func ThisProgram(name, version string) (path, inManifest string, err error) {
	if path, err = os.Executable(); err != nil {
		return "", "", err
	}
	inManifest = fmt.Sprintf("%s %s %s/%s", name, version, runtime.GOOS, runtime.GOARCH)
	if version != "devel" && version != "unknown" && !strings.HasSuffix(version, "-dirty") {
		return path, inManifest, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", "", err
	}
	return path, fmt.Sprintf("%s %x", inManifest, sum.Sum(nil)[:6]), nil
}

// tellEvery is how often it is said how far a sweep is where there is no terminal.
const tellEvery = 30 * time.Second

// Line says how far a sweep is: on a terminal in a line that is written over, elsewhere in a
// line from time to time.
type Line struct {
	Progress *report.Progress // on a terminal; nil: there is none
	Now      func() time.Time
	Print    func(text string)

	told     time.Time
	toldDone int
}

// Show says how far the sweep is.
func (l *Line) Show(p Progress) {
	var parts []string
	for _, of := range []struct {
		n    int
		what string
	}{{p.Failed, "failed"}, {p.Running, "tasks run"}, {p.Waiting, "wait"}} {
		if of.n > 0 {
			parts = append(parts, report.FormatCount(of.n)+" "+of.what)
		}
	}
	if l.Progress != nil {
		l.Progress.Show("sweep", p.Done+p.Failed, p.Total, strings.Join(parts, ", "))
		return
	}
	now := l.Now()
	if l.told.IsZero() {
		l.told = now
	}
	if now.Sub(l.told) < tellEvery || p.Done == l.toldDone {
		return
	}
	l.told, l.toldDone = now, p.Done
	text := fmt.Sprintf("%s of %s parts are done", report.FormatCount(p.Done), report.FormatCount(p.Total))
	l.Print(strings.Join(append([]string{text}, parts...), ", "))
}
