package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/control"
	node "github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/slurm"
)

// serve runs controller and agent in one process until the context ends.
func serve(c *cli.Context, stderr io.Writer) error {
	if c.Args().Present() {
		return usagef("no arguments are expected, got %q", c.Args().First())
	}
	if role := c.String("role"); role != "both" {
		return usagef("--role %q, want both: controller and agent on machines of their own are not there yet", role)
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := os.MkdirAll(c.String("state"), 0o700); err != nil {
		return err
	}
	l, err := node.Listen(c.Context, c.String("socket"), 0o600) // first: it tells whether another epd runs
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // Serve has closed it
	if err := withStore(c, log, l); err != nil {
		// The daemon may not have come as far as giving back old clocks.
		return errors.Join(err, restoreJournal(c, filepath.Join(c.String("state"), "journal"), stderr))
	}
	return nil
}

// withStore opens the records around the rest.
func withStore(c *cli.Context, log *slog.Logger, l net.Listener) (err error) {
	records, err := store.Open(c.Context, filepath.Join(c.String("state"), "records.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	client, err := slurmClient(c.String("slurm"))
	if err != nil {
		return err
	}
	settings, err := settingsOf(c)
	if err != nil {
		return err
	}
	seed, err := lotSeed(filepath.Join(c.String("state"), "seed"))
	if err != nil {
		return err
	}
	options := control.Options{Store: records, Cluster: c.String("cluster"), Settings: settings, Seed: seed, Log: log}
	local := &node.Local{Cluster: options.Cluster}
	if client != nil {
		options.Resolve, local.Job = client.Job, client.Job
	}
	if local.Control, err = control.New(c.Context, options); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), closeBound)
		defer cancel()
		err = errors.Join(err, local.Control.Close(ctx))
	}()
	return withGPUs(c, log, l, local, client)
}

// lotSeed is the number by which jobs are held out: made once and kept, so that
// a restart draws the same lots, and known to nobody else.
func lotSeed(path string) (uint64, error) {
	text, err := os.ReadFile(path) //nolint:gosec // below the state folder
	if err == nil {
		seed, err := strconv.ParseUint(strings.TrimSpace(string(text)), 16, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: want a hexadecimal number: %w", path, err)
		}
		return seed, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	var fresh [8]byte
	if _, err := rand.Read(fresh[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(fresh[:]), renameio.WriteFile(path, []byte(hex.EncodeToString(fresh[:])+"\n"), 0o600)
}

// closeBound is how long records may take to be written at the end.
const closeBound = 5 * time.Second

// withGPUs runs the daemon.
func withGPUs(c *cli.Context, log *slog.Logger, l net.Listener, local *node.Local, client *slurm.Client) error {
	gpus, err := library(c)
	if err != nil {
		return err
	}
	defer gpus.Close() //nolint:errcheck // the program ends
	options, err := agentOptions(filepath.Join(c.String("state"), "journal"), filepath.Join(c.String("state"), "runs"), gpus)
	if err != nil {
		return err
	}
	d := node.New(node.Options{
		Version: version, Role: c.String("role"), Node: nodeName(c), Agent: agent.New(options),
		Controller: local, Records: local.Control.Handler(), Order: gpuOrder(c), Allowed: allowed(c), Log: log, Job: jobProbe(client),
	})
	d.Start(c.Context)
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	group.Go(func() { d.Run(ctx) })
	group.Go(func() { reload(ctx, c, local.Control, log) })
	if path := c.String("submit-socket"); path != "" {
		// Anybody may connect; the kernel says who it is, and slurmctld's user may ask.
		submissions, err := node.Listen(ctx, path, 0o666)
		if err != nil {
			return err
		}
		group.Go(func() {
			if err := d.ServeSubmissions(ctx, submissions); err != nil {
				log.Error("submissions are not answered any more", "error", err)
			}
		})
	}
	notify(log, daemon.SdNotifyReady)
	log.Info("ready", "socket", c.String("socket"), "gpu", c.String("gpu"))
	err = d.Serve(ctx, l)
	notify(log, daemon.SdNotifyStopping)
	return err
}

// notify tells systemd, if it started this.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd can't be told", "error", err)
	}
}

// settingsOf reads the configuration that the flags name.
func settingsOf(c *cli.Context) (*control.Settings, error) {
	path := c.String("config")
	if path == "" {
		return control.DefaultSettings(), nil
	}
	f, err := os.Open(path) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	return control.ReadSettings(f, path)
}

// reload reads the configuration again at each SIGHUP. One that is wrong
// changes nothing.
func reload(ctx context.Context, c *cli.Context, controller *control.Controller, log *slog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			if err := controller.Reload(func() (*control.Settings, error) { return settingsOf(c) }); err != nil {
				log.Error("configuration not reloaded", "error", err)
				continue
			}
			log.Info("configuration reloaded", "version", controller.Settings().Version)
		}
	}
}

// jobProbe tells by Slurm whether a run's job is still there; nil: nobody is
// asked.
func jobProbe(client *slurm.Client) agent.Probe {
	if client == nil {
		return nil
	}
	return func(ctx context.Context, r agent.Run) (agent.Life, error) {
		job, err := client.Job(ctx, slurm.JobID(r.Job))
		switch {
		case errors.Is(err, slurm.ErrNotFound):
			return agent.LifeGone, nil
		case err != nil:
			return agent.LifeUnknown, err
		case job.State.Ended() || job.State.Base == slurm.Pending:
			return agent.LifeGone, nil
		}
		return agent.LifeAlive, nil
	}
}

// nodeName is the node's name in Slurm.
func nodeName(c *cli.Context) string {
	if name := c.String("node"); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	short, _, _ := strings.Cut(name, ".")
	return short
}

func gpuOrder(c *cli.Context) []string {
	if order := c.String("gpu-order"); order != "" {
		return strings.Split(order, ",")
	}
	return nil
}

func allowed(c *cli.Context) []uint32 {
	var uids []uint32
	if slurmUser, err := user.Lookup("slurm"); err == nil {
		if uid, err := strconv.ParseUint(slurmUser.Uid, 10, 32); err == nil {
			uids = append(uids, uint32(uid))
		}
	}
	for _, uid := range c.Uint64Slice("allow-uid") {
		if uid < math.MaxUint32 {
			uids = append(uids, uint32(uid))
		}
	}
	return uids
}

// slurmClient asks Slurm by its commands; nil: nobody is asked.
func slurmClient(how string) (*slurm.Client, error) {
	path, missing := exec.LookPath("scontrol")
	switch {
	case how != "on" && how != "auto" && how != "off":
		return nil, usagef("--slurm %q, want auto, on or off", how)
	case how == "off" || how == "auto" && missing != nil:
		return nil, nil //nolint:nilnil,nilerr // nobody to ask is an answer
	case missing != nil:
		return nil, fmt.Errorf("--slurm on: %w", missing)
	}
	const patience = 500 * time.Millisecond
	return slurm.NewClient(slurm.ExecRunner{Dir: filepath.Dir(path), Conf: os.Getenv("SLURM_CONF"), Timeout: patience}, patience), nil
}
