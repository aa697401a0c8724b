package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/report"
)

// ticker is a clock that a test sets forward.
type ticker struct{ now time.Time }

func (c *ticker) Now() time.Time { return c.now }

func (c *ticker) forward(d time.Duration) { c.now = c.now.Add(d) }

func TestProgressStaysSilentInAPipe(t *testing.T) {
	var out bytes.Buffer
	clock := &ticker{}
	p := report.NewProgress(&out, false, clock.Now, "planning", 10)
	for range 10 {
		clock.forward(time.Second)
		p.Add(1)
	}
	p.Finish()
	if out.Len() != 0 {
		t.Errorf("wrote %q", out.String())
	}
}

func TestProgressDrawsAtMostFiveTimesASecond(t *testing.T) {
	var out bytes.Buffer
	clock := &ticker{}
	p := report.NewProgress(&out, true, clock.Now, "planning", 1000)
	for range 1000 {
		clock.forward(10 * time.Millisecond)
		p.Add(1)
	}
	if n := strings.Count(out.String(), "\r"); n != 50 {
		t.Errorf("drew %d times in 10 s, want 50", n)
	}
}

func TestProgressShowsHowFarItIsAndIsRemovedInTheEnd(t *testing.T) {
	var out bytes.Buffer
	clock := &ticker{}
	p := report.NewProgress(&out, true, clock.Now, "evil\x1b[2J", 2000)
	clock.forward(10 * time.Second)
	p.Add(500)
	want := "\revil\\x1b[2J  [#######.......................] 500/2,000  30s left\x1b[K"
	if out.String() != want {
		t.Errorf("drew %q, want %q", out.String(), want)
	}
	out.Reset()
	p.Finish()
	p.Add(100)
	p.Finish()
	if out.String() != "\r\x1b[K" {
		t.Errorf("the end is %q", out.String())
	}
}

func TestShortWorkShowsNoProgressAtAll(t *testing.T) {
	var out bytes.Buffer
	clock := &ticker{}
	p := report.NewProgress(&out, true, clock.Now, "planning", 3)
	clock.forward(100 * time.Millisecond)
	p.Add(5)
	p.Finish()
	if out.Len() != 0 {
		t.Errorf("wrote %q", out.String())
	}
}

func TestProgressOfASearchSaysWhatItFoundOnALineThatFits(t *testing.T) {
	var out bytes.Buffer
	clock := &ticker{}
	p := report.NewProgress(&out, true, clock.Now, "plan", 1)
	clock.forward(time.Second)
	p.Show("search", 0, 1000, "")
	clock.forward(3 * time.Second)
	out.Reset()
	p.Show("search", 300, 1000, "best 3.2 MJ, 1 past due\x1b[2J")
	if want := "\rsearch  [###.......]  30 %, 7s left  best 3.2 MJ, 1 past due\\x1b[2J\x1b[K"; out.String() !=
		want {
		t.Errorf("drew %q, want %q", out.String(), want)
	}
	out.Reset()
	p.Show("search", 301, 1000, "best 3.2 MJ")
	if out.Len() > 0 {
		t.Errorf("drew %q in the same moment", out.String())
	}
	clock.forward(time.Second)
	p.Show(strings.Repeat("long ", 30), 1, 2, "")
	if line := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[K"); len([]rune(line)) > 79 {
		t.Errorf("%d characters, want no more than a narrow terminal has: %q", len([]rune(line)), line)
	}
	out.Reset()
	p.Finish()
	p.Show("search", 1000, 1000, "")
	if out.String() != "\r\x1b[K" {
		t.Errorf("the end is %q", out.String())
	}
}
