package view

import (
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// Problems returns what is wrong with a controller, and what may need a look.
func Problems(s *epdapi.ControllerStatus) (bad, warn []string) {
	if s.Trouble != "" {
		bad = append(bad, "records: "+s.Trouble)
	}
	if s.Lost > 0 {
		bad = append(bad, report.Plural(s.Lost, "record was", "records were")+
			" lost: the store refused them or had no room")
	}
	for _, sync := range []struct {
		what string
		of   *epdapi.SyncStatus
	}{{"jobs", &s.Queue}, {"nodes", &s.Nodes}} {
		if sync.of.Unread > 0 {
			warn = append(warn, strings.TrimSuffix(sync.of.UnreadText(sync.what), "\n"))
		}
		if sync.of.Failures > 0 {
			warn = append(warn, "Slurm doesn't say which "+sync.what+" there are, "+
				report.Plural(sync.of.Failures, "time")+" in a row; its last answer: "+DateTime(sync.of.At)+
				reasonSuffix(sync.of.Trouble))
		}
	}
	if s.Implausible > 0 {
		text := report.Plural(s.Implausible, "outcome is", "outcomes are") +
			" implausible: kept, but counted nowhere"
		if s.LastImplausible != "" {
			text += "; the last: " + s.LastImplausible
		}
		warn = append(warn, text)
	}
	if s.OutcomeErrors > 0 {
		warn = append(warn, report.Plural(s.OutcomeErrors, "time")+" an outcome couldn't be stored; agents "+
			"keep it and try again")
	}
	return bad, warn
}

// reasonSuffix returns a reason behind a colon; "" without one.
func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// ProblemsText returns the problems of a controller as lines for a terminal.
func ProblemsText(s *epdapi.ControllerStatus) string {
	v, kinds := &View{}, [...]page.Severity{page.Bad, page.Warn}
	bad, warn := Problems(s)
	for i, all := range [][]string{bad, warn} {
		for _, text := range all {
			v.notice(kinds[i], text)
		}
	}
	return v.Text()
}
