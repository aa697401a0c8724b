package web

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

// dash stands for what isn't known.
const dash = "–"

func orDash(text string) string { return cmp.Or(text, dash) }

// jobNameCell returns a job's name in a list: so much of it as leaves room for the rest. All
// of it is on the job's page. What follows the name stays.
func jobNameCell(name, after string) page.Cell {
	const most = 60
	text := []rune(name)
	if len(text) <= most {
		return page.Cell{Text: orDash(name) + after}
	}
	return page.Cell{Text: string(text[:most-1]) + "…" + after, Title: name}
}

// ago returns how long ago something was.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	switch d := now.Sub(t); {
	case d < 2*time.Second:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s ago", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min ago", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h ago", d.Hours())
	default:
		return fmt.Sprintf("%.0f days ago", d.Hours()/24)
	}
}

func joulesText(j float64) string { return report.FormatJoules(dvfsmodel.Joule(j)) }

func wattsText(w float64) string { return report.FormatWatts(w) }

func joulesOrDash(n live.Number) string { return numberOrDash(n, joulesText) }

// timeDigits is how exact times of a column are, the shortest one at least.
const timeDigits = 3

// commonTimeFormat writes times that stand below or beside each other, all of them in one
// unit.
func commonTimeFormat(all ...live.Number) func(live.Number) string {
	var known []float64
	for _, n := range all {
		if v, ok := n.Get(); ok {
			known = append(known, v)
		}
	}
	scale := report.CommonScale(report.Seconds, timeDigits, known...)
	return func(n live.Number) string { return numberOrDash(n, scale.FormatWithUnit) }
}

func numberOrDash(n live.Number, format func(float64) string) string {
	if v, ok := n.Get(); ok {
		return format(v)
	}
	return dash
}

// statedShare returns a part of a whole that somebody configured, no more exact than it
// was stated.
func statedShare(x float64) string { return strconv.FormatFloat(100*x, 'g', 4, 64) + " %" }

func mhzText(f dvfsmodel.MHz) string {
	return strconv.FormatFloat(math.Round(float64(f)), 'f', 0, 64) + " MHz"
}

// clocksCell returns a pair of clocks in a table.
func clocksCell(s dvfsmodel.Setting) page.Cell { return page.Cell{Text: s.Words(), Listed: true} }

// againstPredicted returns how far a measured quantity is from the predicted one.
func againstPredicted(measured, predicted live.Number) string {
	m, known := measured.Get()
	p, ok := predicted.Get()
	if !known || !ok || p <= 0 {
		return dash
	}
	return fmt.Sprintf("%+.1f %%", 100*(m/p-1))
}

// stateKind returns what a job's state means for its owner.
func stateKind(state string) page.Severity {
	switch state {
	case "COMPLETED":
		return page.Good
	case "RUNNING", "COMPLETING", "CONFIGURING":
		return page.Info
	case "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED":
		return page.Bad
	case "CANCELLED", "PREEMPTED", "SUSPENDED":
		return page.Warn
	}
	return page.Plain
}

// stateCell returns a job's state in a table.
func stateCell(state string) page.Cell {
	if state == "" {
		return page.Cell{Text: dash}
	}
	return page.Cell{Text: state, Kind: stateKind(state), Badge: true}
}

func jobCell(id int64) page.Cell {
	return page.Cell{Text: strconv.FormatInt(id, 10), Href: view.JobHref(id)}
}

// shortReason returns a reason that fits into a table.
func shortReason(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// workloadHref returns where a workload's model is shown; empty for a model that isn't
// of clocks.
func workloadHref(workload, gpuModel string) string {
	if gpuModel == "" {
		return ""
	}
	return "/workloads/" + url.PathEscape(workload) + "?" + url.Values{"gpu": {gpuModel}}.Encode()
}
