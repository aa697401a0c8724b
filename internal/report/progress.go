package report

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/queue"
)

// Progress is a line on a terminal that says how far long work is. It writes
// nothing where there is no terminal. All methods may be called by several
// goroutines.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	now     func() time.Time
	label   string
	total   int
	done    int
	before  int // steps that were done when the work began
	note    string
	started time.Time
	drawn   time.Time
	shown   bool
}

// progressEvery is the shortest time between two updates, and how long work
// takes before there is a line at all.
const progressEvery = 200 * time.Millisecond

// barWidth is the length of the bar in characters.
const barWidth = 30

// NewProgress starts a line for total steps of work. Unless terminal is true it
// stays silent.
func NewProgress(w io.Writer, terminal bool, now func() time.Time, label string, total int) *Progress {
	p := &Progress{now: now, label: queue.Printable(label), total: max(1, total)}
	if terminal {
		p.w, p.started = w, now()
		p.drawn = p.started
	}
	return p
}

// Add counts steps that are done.
func (p *Progress) Add(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = min(p.total, p.done+steps)
	if p.w == nil {
		return
	}
	if now := p.now(); now.Sub(p.drawn) >= progressEvery {
		p.drawn, p.shown = now, true
		p.draw(now)
	}
}

// Show says what is being done, how many steps of it are done, and what came of the
// work so far. What is being done may change.
func (p *Progress) Show(doing string, done, total int, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	now := p.now()
	if label := queue.Printable(doing); label != p.label {
		p.label, p.started, p.before = label, now, done
	}
	p.done, p.total, p.note = min(done, total), max(1, total), queue.Printable(note)
	if now.Sub(p.drawn) >= progressEvery {
		p.drawn, p.shown = now, true
		p.drawShown(now)
	}
}

// maxLineLength is how long the line of Show may be: one that is wider than the terminal
// couldn't be written over.
const maxLineLength = 79

// drawShown is draw for a line whose work changes.
func (p *Progress) drawShown(now time.Time) {
	const bar = 10
	part := float64(p.done) / float64(p.total)
	filled := int(part * bar)
	line := fmt.Sprintf("%s  [%s%s] %3.0f %%%s", p.label, strings.Repeat("#", filled),
		strings.Repeat(".", bar-filled), 100*part, p.remainingText(now, ", "))
	if p.note != "" {
		line += "  " + p.note
	}
	_, _ = fmt.Fprintf(p.w, "\r%s\x1b[K", Truncate(line, maxLineLength))
}

// remainingText says how long the rest will take at the pace so far.
func (p *Progress) remainingText(now time.Time, before string) string {
	if p.done <= p.before || p.done >= p.total {
		return ""
	}
	rest := time.Duration(float64(now.Sub(p.started)) * float64(p.total-p.done) / float64(p.done-p.before))
	return before + rest.Round(time.Second).String() + " left"
}

// draw writes the line over the one before. That it can't be written is no
// reason to stop the work.
func (p *Progress) draw(now time.Time) {
	part := float64(p.done) / float64(p.total)
	filled := int(part * barWidth)
	_, _ = fmt.Fprintf(p.w, "\r%s  [%s%s] %s/%s%s\x1b[K", p.label,
		strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), FormatCount(p.done),
		FormatCount(p.total), p.remainingText(now, "  "))
}

// Finish removes the line.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
	p.w, p.shown = nil, false
}
