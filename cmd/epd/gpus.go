package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/gpu/amdgpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/statedir"
)

// openGPUs opens the GPUs that the flags name.
func openGPUs(c *cli.Context) (gpu.Library, error) {
	which := chosenDriver(c)
	faults, err := gpu.ParseFaults(c.String("gpu-faults"))
	if err != nil {
		return nil, usagef("--gpu-faults: %w", err)
	}
	switch {
	case which == "nvml":
		return gpu.OpenNVML()
	case which == "amd":
		return amdgpu.Open(amdgpu.Options{
			Sysfs: sysfs, Notes: claimsFolder(c), Driver: driverID(which), Root: os.Geteuid() == 0,
		})
	case which == "exec", strings.HasPrefix(which, "exec:"):
		return nil, fmt.Errorf("--gpu %s: epd doesn't set GPUs by a site's commands (auto asks for them if %s "+
			"is there)\nhint: lock clocks in your own Prolog, name them in [live.site_clocks], and remove "+
			"the file: docs/hardware.md#if-epd-may-not-be-root", which, commandsFile)
	case isSimulated(which):
		l, err := openSim(which, c.String("state"), faults)
		if err != nil {
			return nil, simError(err)
		}
		return l, nil
	}
	return nil, usagef("--gpu %q, want auto, nvml, amd or sim[:COUNT]", which)
}

// commandsFile names commands that set GPUs where epd may not. auto refuses it: a driver chosen in its
// place in silence would set what the site keeps from epd. Tests have another one.
var commandsFile = "/etc/epplan/gpu-commands.toml" //nolint:gochecknoglobals // replaced by tests

// chosenDriver returns the driver that the flag names. auto is NVIDIA's, or AMD's if theirs is the only one:
// so the Epilog's epd restore needs no flag on any node.
func chosenDriver(c *cli.Context) string {
	which := c.String("gpu")
	if which != "auto" {
		return which
	}
	if _, err := os.Stat(commandsFile); err == nil {
		return "exec"
	}
	if !isModuleLoaded("nvidia") && isModuleLoaded("amdgpu") {
		return "amd"
	}
	return "nvml"
}

// isModuleLoaded reports whether the kernel has a driver.
func isModuleLoaded(module string) bool {
	_, err := os.Stat(filepath.Join("/sys/module", module))
	return err == nil
}

// sysfs is where AMD's GPUs are looked for; nil: the kernel's folder. Tests have one of their own.
var sysfs amdgpu.Sysfs

// openSim opens the simulated GPUs of a state folder.
func openSim(which, state string, faults *gpu.Faults) (*gpu.SimLibrary, error) {
	o := gpu.SimOptions{Dir: filepath.Join(state, "sim"), Faults: faults}
	return gpu.OpenSim(which, config.BuiltinProfiles().Board, &o)
}

// simError is why there are no simulated GPUs: what --gpu says, or the folder.
func simError(err error) error {
	if _, insecure := errors.AsType[*statedir.InsecureError](err); insecure {
		return err
	}
	return usagef("--gpu: %w", err)
}

// isSimulated reports whether the GPUs are.
func isSimulated(which string) bool {
	name, _, _ := strings.Cut(which, ",")
	return name == "sim" || strings.HasPrefix(name, "sim:")
}

// simSpeed returns how much faster than Slurm's clock the GPUs' time goes by.
func simSpeed(c *cli.Context) (float64, error) {
	which := c.String("gpu")
	if !isSimulated(which) {
		return 1, nil
	}
	n, err := gpu.SimSpeed(which)
	if err != nil {
		return 0, usagef("--gpu: %w", err)
	}
	return n, nil
}

// bootID tells this boot of the machine from others; empty where the kernel
// doesn't say.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}

// driverID tells this load of the driver from others, as well as can be told.
func driverID(which string) string {
	module := "nvidia"
	if which == "amd" {
		module = "amdgpu"
	}
	info, err := os.Stat(filepath.Join("/sys/module", module))
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format("20060102T150405.000000000")
}

// gpuClaims is where processes say which GPUs are theirs, whatever their state folder:
// the machine has one, of root alone (/run/epplan may be Slurm's user's).
const gpuClaims = "/run/epplan-gpus"

// claimsFolder is that, and a folder of their own for simulated GPUs.
func claimsFolder(c *cli.Context) string {
	if isSimulated(c.String("gpu")) || sysfs != nil { // not the machine's
		return filepath.Join(c.String("state"), "sim")
	}
	return gpuClaims
}

// agentOptions returns those of an agent whose files lie below a folder; without runs it
// only gives clocks back, whatever becomes of the claims.
func agentOptions(c *cli.Context, journal, runs string, l gpu.Library) (agent.Options, error) {
	o := agent.Options{Library: l, Boot: bootID(), Driver: driverID(chosenDriver(c))}
	folder, opening := statedir.OpenFolder(journal)
	claims, err := agent.OpenClaims(claimsFolder(c), journal)
	switch {
	case err == nil && runs != "":
		o.Claims = claims.WithWait()
	case err == nil:
		o.Claims = claims
	case runs != "" && os.Geteuid() == 0: // others can't set clocks
		return o, errors.Join(opening, err)
	}
	if opening != nil {
		return o, fmt.Errorf("journal: %w", opening)
	}
	o.Journal = folder
	if runs == "" {
		return o, nil
	}
	folder, err = statedir.OpenFolder(runs)
	if err != nil {
		return o, fmt.Errorf("open runs: %w", err)
	}
	o.Runs = folder
	return o, nil
}

// hostMeter measures what the node uses beside its GPUs; nil where that can't
// be read. Simulated GPUs have no host, unless the flags name one.
func hostMeter(c *cli.Context, log *slog.Logger) *nodepower.Meter {
	dir := c.String("powercap")
	if dir == "" {
		if isSimulated(c.String("gpu")) {
			return nil
		}
		dir = "/sys/class/powercap"
	}
	meter, err := nodepower.Open(os.DirFS(dir))
	if err != nil {
		log.Info("the node's energy is modelled, not measured", "powercap", dir, "reason", err)
		return nil
	}
	log.Info("the node's energy is measured", "powercap", dir, "counters", strings.Join(meter.Domains(), ","))
	return meter
}
