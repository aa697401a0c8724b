package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/gpu/gpucheck"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/statedir"
)

func gpuCheckCommand(stdout, stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:      "gpu-check",
		Usage:     "try a node's GPUs: what the driver tells, how long it takes, and whether locks hold",
		UsageText: "epd gpu-check [--write] [--json] [OPTIONS]",
		Description: "Reads everything of every GPU and changes nothing; with --write it also locks each GPU that nobody uses,\n" +
			"kills the process that locked it, gives back by its journal, and looks whether all is as before. The report\n" +
			"names no machine, no user and no board's number: docs/gpu-check.md says how to send it in.\n" +
			"Example: epd gpu-check --write",
		HideHelpCommand: true,
		OnUsageError:    refuseUsage,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "write", Usage: "lock each GPU once, and give it back"},
			&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
			&cli.Float64Flag{Name: "seconds", Usage: "watch each GPU for `SECONDS` at a time", Value: 5},
			&cli.StringFlag{Name: "hold", Hidden: true}, &cli.StringFlag{Name: "at", Hidden: true},
		}, gpuFlags()...),
		Action: func(c *cli.Context) error {
			if uuid := c.String("hold"); uuid != "" {
				return holdGPU(c, uuid, os.Stdin, stdout)
			}
			return checkGPUs(c, stdout, stderr)
		},
	}
}

// maxWatch is for how long a GPU is watched at most, watchEvery the time between two readings.
const (
	maxWatch   = 600 // seconds
	watchEvery = 250 * time.Millisecond
)

// checkGPUs tries the GPUs that the flags name.
func checkGPUs(c *cli.Context, stdout, stderr io.Writer) error {
	seconds := c.Float64("seconds")
	switch {
	case c.Args().Present():
		return usagef("gpu-check takes no arguments, got %q", c.Args().First())
	case !(seconds > 0 && seconds <= maxWatch):
		return usagef("--seconds %v, want more than 0, at most %d", seconds, maxWatch)
	}
	l, err := openGPUs(c)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the program ends
	o := gpucheck.Options{
		Version: version, Driver: driverName(c), Library: l, Boards: config.BuiltinProfiles().Board,
		Watch: time.Duration(seconds * float64(time.Second)), Every: watchEvery,
	}
	folder, err := os.MkdirTemp("", "epd-gpu-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // of no use any more
	if sims, ok := l.(*gpu.SimLibrary); ok {
		o.Load = func(_ context.Context, id gpu.Identity) (func(), error) { return simulatedLoad(sims, id) }
	} else {
		o.Load, o.NoLoad = gpucheck.CompilerLoad(folder, loadCompilers(chosenDriver(c))...)
	}
	if c.Bool("write") {
		locker := &childLocker{c, filepath.Join(c.String("state"), "gpu-check"), stderr}
		if err := locker.Restore(c.Context); err != nil { // what a check that was killed may have left
			return fmt.Errorf("give back what an earlier check left: %w", err)
		}
		o.Locker = locker
	}
	report, err := gpucheck.Check(c.Context, o)
	if writing := writeCheck(c, stdout, report); writing != nil {
		return errors.Join(err, writing)
	}
	if err == nil && !report.OK() {
		err = errors.New("the check found faults")
	}
	return err
}

func writeCheck(c *cli.Context, stdout io.Writer, checked *gpucheck.Report) error {
	if !c.Bool("json") {
		return checked.Write(stdout)
	}
	return report.WriteJSON(stdout, checked, "  ")
}

// driverName returns which driver it is, without files of the site.
func driverName(c *cli.Context) string {
	name, _, _ := strings.Cut(chosenDriver(c), ":")
	if isSimulated(chosenDriver(c)) {
		return chosenDriver(c)
	}
	return name
}

// loadCompilers returns those that make programs for the GPUs of a driver.
func loadCompilers(which string) []string {
	switch which {
	case "nvml":
		return []string{"nvcc"}
	case "amd":
		return []string{"hipcc"}
	}
	return []string{"nvcc", "hipcc"}
}

// simulatedLoad makes a simulated GPU work until stop.
func simulatedLoad(l *gpu.SimLibrary, id gpu.Identity) (stop func(), err error) {
	all, err := l.Sims()
	for _, s := range all {
		if s.Identity().UUID != id.UUID {
			continue
		}
		pid := os.Getpid()
		model := dvfsmodel.Params{P0: workStatic, Gamma: workMemory, C: workDynamic, D: maxWatch, Delta: 0.5}
		if err := s.Run(gpu.Work{PID: pid, Model: model}); err != nil {
			return nil, err
		}
		return func() { _ = s.Stop(pid) }, nil
	}
	return nil, errors.Join(errors.New("no such simulated GPU"), err)
}

// childLocker locks GPUs in processes of this program.
type childLocker struct {
	*cli.Context
	folder string // of their journal
	stderr io.Writer
}

// itself is this program once more; tests have another one.
var itself = func(args ...string) *exec.Cmd { //nolint:gochecknoglobals // replaced by tests
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return exec.Command(path, args...) //nolint:gosec // this program itself
}

// holdAnswer is what a process says that has locked a GPU.
type holdAnswer struct {
	TookMS float64 `json:"took_ms"`
}

// lockBound is how long it may take until a process has locked a GPU.
const lockBound = 30 * time.Second

// Lock is part of [gpucheck.Locker]. The process gives back and ends when this one does: its input ends then.
func (l *childLocker) Lock(
	ctx context.Context, uuid string, at dvfsmodel.Setting,
) (took time.Duration, kill func() error, err error) {
	cmd := itself("gpu-check", "--hold", uuid, "--at", settingText(at), "--gpu", chosenDriver(l.Context),
		"--gpu-faults", l.String("gpu-faults"), "--state", l.String("state"))
	input, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	kill = func() error {
		killing := cmd.Process.Kill()
		_ = cmd.Wait() // as it was killed, that is an error
		_ = input.Close()
		return killing
	}
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(output, 1<<10)).ReadString('\n')
		lines <- line
	}()
	var answer holdAnswer
	select {
	case line := <-lines:
		err = json.Unmarshal([]byte(line), &answer)
	case <-time.After(lockBound):
		err = fmt.Errorf("no answer within %s", lockBound)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = kill()
		return 0, nil, fmt.Errorf("the process that was to lock it: %w: %s", err,
			slurm.Printable(strings.TrimSpace(said.String()), 400))
	}
	return time.Duration(answer.TookMS * float64(time.Millisecond)), kill, nil
}

// Restore is part of [gpucheck.Locker]: what epd restore does.
func (l *childLocker) Restore(ctx context.Context) error {
	if err := statedir.Make(l.folder); err != nil {
		return err
	}
	library, err := openGPUs(l.Context)
	if err != nil {
		return err
	}
	defer library.Close() //nolint:errcheck // the program ends
	options, err := agentOptions(l.Context, filepath.Join(l.folder, "journal"), "", library)
	if err != nil {
		return err
	}
	options.SiteClocks = siteOfNode(l.Context)
	ctx, cancel := context.WithTimeout(ctx, restoreBound)
	defer cancel()
	report, err := agent.RestoreJournal(ctx, options)
	for _, note := range report.Notes {
		_, _ = fmt.Fprintf(l.stderr, "warning: %s\n", slurm.Printable(note, 1000))
	}
	return errors.Join(err, report.Err(), os.RemoveAll(filepath.Join(l.folder, "runs")))
}

// siteOfNode returns the site's clocks as the node's agent knows them: a check gives GPUs back to these.
func siteOfNode(c *cli.Context) func(gpu.Identity) (dvfsmodel.Setting, bool) {
	folder, err := statedir.OpenToGiveBack(filepath.Join(c.String("state"), "journal"))
	if err != nil {
		return nil // no agent has been here
	}
	return agent.SiteInBaselines(folder)
}

// holdGPU is the process that locks one GPU as an agent does and goes on until it is killed, or
// its input ends.
func holdGPU(c *cli.Context, uuid string, stdin io.Reader, stdout io.Writer) error {
	at, err := parseSetting(c.String("at"))
	if err != nil {
		return err
	}
	l, err := openGPUs(c)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the program ends
	folder := filepath.Join(c.String("state"), "gpu-check")
	options, err := agentOptions(c, filepath.Join(folder, "journal"), filepath.Join(folder, "runs"), l)
	if err != nil {
		return err
	}
	options.SiteClocks = siteOfNode(c)
	a := agent.New(options)
	defer a.Close()
	if _, err := a.Start(c.Context); err != nil {
		return err
	}
	began := time.Now()
	applied, err := a.Apply(c.Context, live.Run{
		ID: agent.NewRunID(), Job: 1, Node: "gpu-check", GPUs: []string{uuid}, Setting: at,
		Wish: live.RunWish{Fixed: true}, Started: began,
	})
	if err == nil && !applied.Locked {
		err = errors.New("it isn't locked")
	}
	if err == nil {
		err = json.NewEncoder(stdout).Encode(holdAnswer{float64(time.Since(began)) / float64(time.Millisecond)})
	}
	if err == nil {
		_, err = io.Copy(io.Discard, stdin)
	}
	_, stopping := a.Stop(context.WithoutCancel(c.Context))
	return errors.Join(err, stopping)
}

// settingText returns a setting as parseSetting reads it.
func settingText(at dvfsmodel.Setting) string {
	values := make([]string, gpu.NumControls)
	for control := range gpu.NumControls {
		values[control] = strconv.FormatFloat(float64(control.ValueIn(at)), 'f', -1, 64)
	}
	return strings.Join(values, ",")
}

// parseSetting reads "CORE,MEM,CAP,PROFILE", 0 for what is left alone.
func parseSetting(text string) (dvfsmodel.Setting, error) {
	var at dvfsmodel.Setting
	parts := strings.Split(text, ",")
	if len(parts) != int(gpu.NumControls) {
		return at, usagef("--at %q, want core, memory, limit and profile", text)
	}
	for control := range gpu.NumControls {
		v, err := strconv.ParseFloat(parts[control], 64)
		if err != nil {
			return at, usagef("--at %q, want numbers", text)
		}
		control.SetIn(&at, gpu.Value(v))
	}
	return at, nil
}
