package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/epdapi"
)

// Sockets in the order in which commands try them: one for everybody comes
// first for those that everybody may use, the controller's first for those that
// change it, this node's agent first for its state.
var (
	publicFirst     = []string{epdapi.PublicSocket, epdapi.ControllerSocket, epdapi.AgentSocket}
	controllerFirst = []string{epdapi.ControllerSocket, epdapi.AgentSocket, epdapi.PublicSocket}
	agentFirst      = []string{epdapi.AgentSocket, epdapi.ControllerSocket, epdapi.PublicSocket}
)

// anySocketFlag is --socket of commands that look for an epd themselves.
func anySocketFlag(sockets []string) cli.Flag {
	return &cli.StringFlag{
		Name: "socket", Usage: "`PATH` of epd's socket", EnvVars: []string{"EPPLAN_SOCKET"},
		DefaultText: "the first that answers, " + sockets[0] + " before others",
	}
}

// askBound is how long people wait for an answer.
const askBound = 15 * time.Second

// ask asks the epd of --socket, or the first of several.
func ask[T any](c *cli.Context, sockets []string, question func(context.Context, *epdapi.Client) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(c.Context, askBound)
	defer cancel()
	if path := c.String("socket"); path != "" {
		sockets = []string{path}
	}
	answer, err := question(ctx, epdapi.New(sockets...))
	if errors.Is(err, epdapi.ErrUnreachable) {
		hint := "is epd running? --socket names another socket"
		if errors.Is(err, fs.ErrPermission) {
			hint = "that socket is for root; " + epdapi.PublicSocket + " is for everybody, where epd has --submit-socket"
		}
		return answer, &hintedError{err: err, hint: hint}
	}
	return answer, err
}

// printJSON prints a value as JSON in which no text can act on a terminal.
func (t *terminal) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range string(text) { // only strings have such characters
		switch {
		case r == '\n' || strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return t.printText(b.String() + "\n")
}

// printText prints lines for people.
func (t *terminal) printText(text string) error {
	return t.print(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
