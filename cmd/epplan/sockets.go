package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
)

// Sockets in the order in which commands try them: one for everybody comes first for those that everybody
// may use, the controller's first for those that change it, this node's agent first for its state.
var (
	publicFirst     = []string{epdapi.PublicSocket, epdapi.ControllerSocket, epdapi.AgentSocket}
	controllerFirst = []string{epdapi.ControllerSocket, epdapi.AgentSocket, epdapi.PublicSocket}
	agentFirst      = []string{epdapi.AgentSocket, epdapi.ControllerSocket, epdapi.PublicSocket}
)

// anySocketFlag is --socket of commands that look for an epd themselves.
func anySocketFlag(sockets []string) cli.Flag {
	return &cli.StringFlag{
		Name: "socket", Usage: "`PATH` of epd's socket, or HOST:PORT of a controller",
		EnvVars:     []string{"EPPLAN_SOCKET"},
		DefaultText: "the first that answers, " + sockets[0] + " before others",
	}
}

// askTimeout is how long people wait for an answer.
const askTimeout = 15 * time.Second

// ask asks the epd of --socket, or the first of several.
func ask[T any](
	c *cli.Context, sockets []string, question func(*epdapi.Client, context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(c.Context, askTimeout)
	defer cancel()
	answer, err := question(clientAt(c.String("socket"), sockets), ctx)
	return answer, withSocketHint(err)
}

// withSocketHint adds a hint to the error of an epd that can't be reached.
func withSocketHint(err error) error {
	if !errors.Is(err, epdapi.ErrUnreachable) {
		return err
	}
	hint := "is epd running? --socket names another socket"
	if errors.Is(err, fs.ErrPermission) {
		hint = "that socket is for root; " + epdapi.PublicSocket +
			" is for everybody, where epd has --submit-socket"
	}
	return terminal.WithHint(err, hint)
}

// clientAt returns a client of the epd at a socket; of a controller, by munge, at
// HOST:PORT; of the first of several sockets where neither is named.
func clientAt(where string, sockets []string) *epdapi.Client {
	if where == "" {
		return epdapi.New(sockets...)
	}
	if _, _, err := net.SplitHostPort(where); err != nil || strings.Contains(where, "/") {
		return epdapi.New(where)
	}
	return epdapi.NewRemote(where,
		munge.NewTransport(munge.New(os.Getenv("EPPLAN_MUNGE_SOCKET")), slurmUsers()...))
}

// slurmUsers returns those beside root whose answers are taken: Slurm's user.
func slurmUsers() []uint32 {
	u, err := user.Lookup("slurm")
	if err != nil {
		return nil
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil
	}
	return []uint32{uint32(uid)}
}
