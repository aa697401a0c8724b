package tutorial

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// shell is one that stays: what a command exports, the next one has.
type shell struct {
	testing.TB

	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// mark ends the output of a command, with its exit status behind it.
const mark = "end of the command, status "

// openShell starts a shell in a folder, which ends with the test. What it builds
// is of a version.
func openShell(tb testing.TB, dir, version string) *shell {
	tb.Helper()
	bash := slurmlab.Preferred("bash", "--norc", "--noprofile")
	cmd := exec.CommandContext(tb.Context(), bash[0], bash[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TERM=dumb", "VERSION="+version)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { // who types isn't run by make
		name, _, _ := strings.Cut(v, "=")
		return name == "MAKEFLAGS" || name == "MFLAGS" || name == "MAKELEVEL"
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	return &shell{TB: tb, cmd: cmd, input: input, output: bufio.NewReader(output)}
}

// run types a command and returns what it printed, on both streams, and how long
// it took. A command that fails ends the test.
func (s *shell) run(at, command string) (printed string, took time.Duration) {
	s.Helper()
	began := time.Now()
	if _, err := fmt.Fprintf(s.input, "{ %s\n} </dev/null; echo \"%s$?\"\n", command, mark); err != nil {
		s.Fatalf("%s: %v", at, err)
	}
	var b strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if before, status, ended := strings.Cut(line, mark); ended {
			b.WriteString(before)
			if status != "0\n" {
				s.Fatalf("%s: %s\n%sended with status %s", at, command, b.String(), status)
			}
			return b.String(), time.Since(began)
		}
		if err != nil {
			s.Fatalf("%s: %s\n%s%v", at, command, b.String(), err)
		}
		b.WriteString(line)
	}
}
