package setup

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/trace/joblog"
)

// TimeZone returns the time zone of that name; the machine's for none.
func TimeZone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, terminal.Usagef("--timezone %q, want a name such as UTC or Europe/Berlin", name)
	}
	return zone, nil
}

// progressReader is a reader that stops with a context and tells how far it is.
type progressReader struct {
	io.Reader
	ctx      context.Context //nolint:containedctx // a reader has no other way to be stopped
	progress *report.Progress
}

// NewProgressReader returns a reader of r; progress may be nil.
func NewProgressReader(ctx context.Context, r io.Reader, progress *report.Progress) io.Reader {
	return &progressReader{r, ctx, progress}
}

// Read implements io.Reader.
func (w *progressReader) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.Reader.Read(p)
	if w.progress != nil {
		w.progress.Add(n)
	}
	return n, err
}

// WarnOfLog warns of what was left out of a log, and of what isn't known of what its jobs took.
func WarnOfLog(t *terminal.Terminal, tally *joblog.Tally) {
	for _, k := range tally.Skipped {
		t.Message("warning", ProblemText(&k, "left out"))
	}
	for _, k := range tally.Noted {
		if k.IsGrave() {
			t.Warningf("%s: %s, the first at %s", report.Plural(int(k.Count), "job"), k.Kind, k.First[0])
		}
	}
}

// ProblemText returns what is wrong with lines, with the first of them.
func ProblemText(k *joblog.LineProblem, what string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s:", report.Plural(int(k.Count), "line"), what, k.Kind)
	for _, first := range k.First {
		b.WriteString("\n  " + first)
	}
	if more := k.Count - int64(len(k.First)); more > 0 {
		fmt.Fprintf(&b, "\n  … and %s more", report.FormatCount(int(more)))
	}
	return b.String()
}
