package doctor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
)

var mungeDown = &Fault{
	"munge-down", Bad, "no munged answers at {socket}: {error}",
	"Slurm's daemons can't talk to each other, nor can epd's",
	Fix{Run: "systemctl restart munge"},
}

var mungeHung = &Fault{
	"munge-hung", Bad, "munged at {socket} doesn't answer within {bound}",
	"Slurm's commands hang with it",
	Fix{Run: "systemctl restart munge"},
}

var mungeWrong = &Fault{
	"munge-wrong", Bad, "munged at {socket} rejects its own credentials: {error}",
	"nothing that needs munge works",
	Fix{Run: "munge -n | unmunge    # shows it; then systemctl restart munge"},
}

// checkMunge makes and reads a credential, by Slurm's munged and by epd's where
// that is another one.
func checkMunge(ctx context.Context, e *examination) []Finding {
	_, err := e.munge(ctx)
	var sockets []string
	var found []Finding
	if kind, socket := e.slurmAuth(); kind != slurmNativeAuth {
		sockets = append(sockets, socket)
		found = e.mungeFinding(socket, err)
	}
	for _, ask := range []func(context.Context) (*epdapi.Status, error){e.agentStatus, e.headStatus} {
		s, err := ask(ctx)
		if err != nil || s.Health == nil || len(s.Health.Controllers) == 0 && s.Role != "controller" {
			continue // it asks no munged
		}
		if s.Health.Key != "" {
			continue // nor does it
		}
		if other := cmp.Or(s.Health.MungeSocket, munge.DefaultSocket); !slices.Contains(sockets, other) {
			_, err := e.site.tryMunge(ctx, other)
			found = append(found, e.mungeFinding(other, err)...)
			sockets = append(sockets, other)
			break
		}
	}
	if len(sockets) == 0 {
		return skipFinding("nobody asks munge: Slurm has AuthType=%s, and epd keys", slurmNativeAuth)
	}
	return orOK(found, "munge works at %s", strings.Join(sockets, " and "))
}

func (e *examination) mungeFinding(socket string, err error) []Finding {
	words := []string{"socket", socket, "bound", mungeTimeout.String()}
	switch {
	case err == nil:
		return nil
	case isTimeout(err):
		return mungeHung.finding(words...)
	case errors.Is(err, munge.ErrUnavailable):
		return mungeDown.finding(append(words, "error", innermostText(err))...)
	}
	return mungeWrong.finding(append(words, "error", err.Error())...)
}

func innermostText(err error) string {
	text := err.Error()
	return text[strings.LastIndex(text, ": ")+1+min(1, max(0, strings.LastIndex(text, ": ")+1)):]
}

// How far clocks may be apart: HTTP tells whole seconds, and munge takes
// credentials that are some minutes old.
const (
	maxSkewWarn = 3 * time.Second
	maxSkewBad  = 60 * time.Second
)

var linkDown = &Fault{
	"controller-unreachable", Bad, "no controller answers at {address}: {error}",
	"this node's jobs run at default clocks, and outcomes wait in its spool",
	Fix{
		Run: "ssh {host} systemctl status epd-controller    # and the firewall between: nc -vz {host} {port}",
	},
}

var linkRefused = &Fault{
	"controller-refuses", Bad, "the controller at {address} and this machine don't trust each other: {error}",
	"this node's jobs run at default clocks, and outcomes wait in its spool",
	Fix{Run: "munge -n | ssh {host} unmunge    # must say STATUS: Success, and both epds must run as root " +
		"or Slurm's user"},
}

var keyUnusable = &Fault{
	"key-unusable", Bad, "epd's key or list of keys can't be used: {error}",
	"this node's jobs run at default clocks, and outcomes wait in its spool",
	Fix{Run: "epd keys show --key {key}; epd keys list    # whichever complains says why"},
}

var keyRefused = &Fault{
	"controller-refuses-key", Bad,
	"the controller at {address} and this machine don't know each other's keys: {error}",
	"this node's jobs run at default clocks, and outcomes wait in its spool",
	Fix{
		Run: "epd keys show --key {key} | ssh {host} epd keys add --replace -    # and the other way round",
	},
}

var clockSkewed = &Fault{
	"clock-skew", Warn, "this machine's clock is {skew} {way} that of {host}",
	"if an Epilog is late, the run time is off by as much; from some minutes on munge refuses credentials",
	Fix{Run: "timedatectl set-ntp true    # on both; or: chronyc makestep"},
}

var clockSkewedFar = &Fault{
	"clock-skew-large", Bad, "this machine's clock is {skew} {way} that of {host}",
	"munge refuses credentials: nothing is decided for this node",
	Fix{Run: "timedatectl set-ntp true    # on both; or: chronyc makestep"},
}

// checkLink asks the controllers of this node's agent.
func checkLink(ctx context.Context, e *examination) []Finding {
	addresses, by := e.options.Controllers, Proof{MungeSocket: e.options.MungeSocket}
	if s, err := e.agentStatus(ctx); err == nil && s.Health != nil {
		if s.Role == "both" && len(addresses) == 0 {
			return skipFinding("the controller is in the same process")
		}
		if len(addresses) == 0 {
			addresses = s.Health.Controllers
		}
		by = proofOf(s.Health)
		by.MungeSocket = cmp.Or(e.options.MungeSocket, by.MungeSocket)
	}
	if len(addresses) == 0 {
		return unknownFinding("which controller this node's agent asks isn't known: %v", errNoEPD)
	}
	var found []Finding
	answered := 0
	for _, address := range addresses {
		one, ok := e.checkLink(ctx, address, by)
		found = append(found, one...)
		if ok {
			answered++
		}
	}
	return orOK(found, "%s: %d of %d controllers answer", strings.Join(addresses, ", "), answered,
		len(addresses))
}

// checkLink asks one controller, and compares clocks.
func (e *examination) checkLink(
	ctx context.Context, address string, by Proof,
) (found []Finding, answered bool) {
	host, port := hostAndPort(address)
	words := []string{"address", address, "host", host, "port", port}
	ctx, cancel := context.WithTimeout(ctx, epdTimeout)
	defer cancel()
	_, there, err := e.site.Remote(ctx, address, by)
	skew := time.Duration(0)
	if !there.IsZero() {
		skew = e.site.Now().Sub(there)
	}
	words = append(words, "skew", skew.Abs().Round(time.Second).String(), "way",
		map[bool]string{true: "ahead of", false: "behind"}[skew > 0])
	switch {
	case skew.Abs() >= maxSkewBad:
		return clockSkewedFar.finding(words...), err == nil
	case skew.Abs() >= maxSkewWarn:
		found = append(found, clockSkewed.finding(words...)...)
	}
	switch {
	case err == nil:
		return found, true
	case errors.Is(err, munge.ErrUnavailable):
		return append(found, unknownFinding("%s: munge doesn't work here", address)...), false
	case errors.Is(err, nodekey.ErrFile):
		return append(found, keyUnusable.finding("error", err.Error(), "key", by.Key)...), false
	case by.Key != "" && (errors.Is(err, munge.ErrUnauthentic) || isRefused(err)):
		return append(found, keyRefused.finding(append(words, "error", err.Error(), "key", by.Key)...)...), false
	case errors.Is(err, munge.ErrUnauthentic), isRefused(err):
		return append(found, linkRefused.finding(append(words, "error", err.Error())...)...), false
	}
	return append(found, linkDown.finding(append(words, "error", innermostText(err))...)...), false
}

// hostAndPort takes an address apart, also one of IPv6 in brackets; without a port
// that is empty.
func hostAndPort(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return strings.Trim(address, "[]"), ""
	}
	return host, port
}

func isRefused(err error) bool {
	_, refused := errors.AsType[*epdapi.RefusedError](err)
	return refused
}
