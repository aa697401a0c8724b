package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
)

func TestStrangersCantFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log text
		r := refusalLog{log: slog.New(slog.NewTextHandler(&log, nil))}
		for i := range 1000 {
			r.note("10.0.0.9:4711", fmt.Errorf("no credential %d", i))
		}
		if lines := strings.Count(log.String(), "\n"); lines != refusalsLogged {
			t.Errorf("%d lines for 1000 refusals", lines)
		}
		<-time.After(refusalsTime)
		r.note("10.0.0.9:4711", errors.New("no credential"))
		if !strings.Contains(log.String(), fmt.Sprintf("count=%d", 1000-refusalsLogged)) {
			t.Errorf("what wasn't said isn't counted:\n%s", log.String())
		}
	})
}

func TestWhatOneMachineIsRefusedAgainAndAgainIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log text
		r := refusalLog{log: slog.New(slog.NewTextHandler(&log, nil))}
		for i := range 50 {
			r.note(fmt.Sprintf("10.0.0.9:%d", 4711+i), errors.New("node n1 speaks for itself alone"))
		}
		r.note("10.0.0.8:4711", errors.New("node n1 speaks for itself alone"))
		for ahead := range 50 {
			r.note("10.0.0.9:4711", fmt.Errorf("the clock is %d s ahead", 545+ahead))
		}
		if lines := strings.Count(log.String(), "the clock is"); lines != 1 {
			t.Errorf("%d lines for one clock:\n%s", lines, log.String())
		}
		if lines := strings.Count(log.String(), "speaks for itself alone"); lines != 2 {
			t.Errorf("%d lines for what two machines were refused:\n%s", lines, log.String())
		}
		<-time.After(2 * refusalWindow)
		r.note("10.0.0.9:4711", errors.New("node n1 speaks for itself alone"))
		if lines := strings.Count(log.String(), "speaks for itself alone"); lines != 3 {
			t.Errorf("an hour later it isn't said again:\n%s", log.String())
		}
	})
}

// Who is refused again and again, each time for another reason, hides none of what others are, by whichever
// of the addresses it has.
func TestWhatOneSourceIsRefusedLeavesRoomForOthers(t *testing.T) {
	for what, from := range map[string]func(i int) string{
		"one machine":           func(int) string { return "10.0.0.9:4711" },
		"a network of IPv6":     func(i int) string { return fmt.Sprintf("[2001:db8::%x]:4711", 1+i) },
		"a user of the machine": func(i int) string { return fmt.Sprintf("127.0.%d.%d:4711", i/250, 1+i%250) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var log text
			r := refusalLog{log: slog.New(slog.NewTextHandler(&log, nil))}
			r.note("10.0.0.7:4711", errors.New("told long ago"))
			for i := range 2 * maxSources {
				r.note(from(i), fmt.Errorf("no credential %d", i))
			}
			r.note("10.0.0.8:4711", errors.New("node n1 speaks for itself alone"))
			if !strings.Contains(log.String(), "speaks for itself alone") {
				t.Errorf("%s: it is hidden by what another one sends:\n%s", what, log.String())
			}
			r.note("10.0.0.7:4711", errors.New("told long ago"))
			if strings.Count(log.String(), "told long ago") != 1 {
				t.Errorf("%s: what was told is forgotten:\n%s", what, log.String())
			}
		})
	}
}

// Of very many sources those are forgotten that are known for longest.
func TestOfManySourcesTheOldestIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := refusalLog{log: slog.New(slog.DiscardHandler)}
		for i := range maxSources + 10 {
			r.note(fmt.Sprintf("10.0.%d.%d:4711", i/250, 1+i%250), errors.New("no credential"))
			<-time.After(refusalsTime / 50)
		}
		if len(r.sources) != maxSources || r.sources["10.0.0.10"] != nil || r.sources["10.0.0.11"] == nil {
			t.Errorf("%d are known, the first of them: %v", len(r.sources), r.sources["10.0.0.1"])
		}
	})
}

// Whatever is refused at the port is counted by its kind, where monitoring looks.
func TestWhatIsRefusedAtThePortIsInTheMetrics(t *testing.T) {
	head, headLine := makeKeys(t, "controller", "head")
	n1, line := makeKeys(t, "node", "n1")
	head.believe(t, line)
	n1.believe(t, headLine)
	at, metrics := freePort(t), freePort(t)
	controller := launch(t, t.TempDir(),
		append(head, "--role", "controller", "--listen", at, "--metrics", metrics)...)
	node, err := nodekey.Open(n1.key(), n1.trusted(), time.Now)
	must(t, err)
	client := epdapi.NewRemote(at, munge.NewTransport(node))
	controller.eventually("another node's report is refused as such", func() bool {
		err := client.Post(t.Context(), epdapi.PathReport, &epdapi.NodeReport{Node: "n2"}, new(epdapi.ReportAnswer))
		return err != nil && strings.Contains(err.Error(), "n1")
	})
	response, err := http.Post("http://"+at+epdapi.PathReport, "", nil) //nolint:noctx // a test's own server
	must(t, err)
	must(t, response.Body.Close())
	for range 200 { // half requests
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
		must(t, err)
		defer c.Close() //nolint:errcheck // nothing is read
	}
	controller.eventually("all kinds are counted", func() bool {
		response, err := http.Get("http://" + metrics + "/metrics") //nolint:noctx // a test's own server
		must(t, err)
		defer response.Body.Close() //nolint:errcheck // only read
		text, err := io.ReadAll(response.Body)
		must(t, err)
		for _, kind := range []string{"refused-caller", "refused-request", "evicted-connection"} {
			if !strings.Contains(string(text), `epplan_errors_total{kind="`+kind+`"}`) {
				return false
			}
		}
		return true
	})
}
