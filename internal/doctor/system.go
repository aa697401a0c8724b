package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/statedir"
)

// ThisMachine returns the machine that the program runs on. Slurm's commands are
// those of the PATH, with a slurm.conf of their own where one is named; answers
// of a controller are taken from root and the users given.
func ThisMachine(slurmConf string, trusted ...uint32) *Site {
	s := &Site{
		Run: run, Files: disk{}, Now: time.Now,
		Munge: func(socket string) Munge { return munge.New(socket) },
		EPD:   func(socket string) EPD { return epdapi.New(socket) },
	}
	if path, err := exec.LookPath("scontrol"); err == nil {
		s.Slurm = slurm.ExecRunner{Dir: filepath.Dir(path), Conf: slurmConf, Timeout: slurmTimeout}
	}
	s.Remote = func(ctx context.Context, address string, by Proof) (*epdapi.Status, time.Time, error) {
		at := controllerTime(ctx, address)
		var voucher munge.Voucher = munge.New(by.MungeSocket)
		if by.Key != "" {
			keys, err := nodekey.Open(by.Key, by.TrustedKeys, time.Now)
			if err != nil {
				return nil, at, fmt.Errorf("%w: %w", nodekey.ErrFile, err)
			}
			voucher = keys
		}
		status, err := epdapi.NewRemote(address, munge.NewTransport(voucher, trusted...)).Status(ctx)
		return status, at, err
	}
	return s
}

// controllerTime returns what time it is at a controller: it says so with every answer, also
// to those who prove nothing. The zero time: nobody answers.
func controllerTime(ctx context.Context, address string) time.Time {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+address+epdapi.PathStatus, http.NoBody)
	if err != nil {
		return time.Time{}
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return time.Time{}
	}
	_ = answer.Body.Close()
	at, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// maxOutput bounds what is kept of what a program prints.
const maxOutput = 64 << 10

// run runs a program without any input. It is ended with all that it started
// when its time is over.
func run(ctx context.Context, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the checks' own commands
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	text := out.String()[:min(out.Len(), maxOutput)]
	switch {
	case ctx.Err() != nil:
		return text, fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case err != nil:
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return text, fmt.Errorf("%s: %w", strings.TrimSpace(first), err)
	}
	return text, nil
}

type disk struct{}

const maxFile = 4 << 20

// Read implements Files.
func (disk) Read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(text), err
}

// Stat implements Files.
func (disk) Stat(path string) (Info, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	i := Info{Mode: info.Mode(), Size: info.Size(), At: info.ModTime()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		i.UID, i.Inode = s.Uid, s.Ino
	}
	return i, nil
}

// Glob implements Files.
func (disk) Glob(pattern string) []string {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	return names
}

// FreeSpace implements Files.
func (disk) FreeSpace(path string) (free, all uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	size := uint64(s.Bsize) //nolint:gosec // never negative
	return s.Bavail * size, s.Blocks * size, nil
}

// CheckTrust implements Files.
func (disk) CheckTrust(path string, uid uint32) error { return statedir.CheckFor(path, uid) }
