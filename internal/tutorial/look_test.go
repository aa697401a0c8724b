package tutorial

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"

	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// picture is one of the page, which shows what a reader sees in a browser.
type picture struct {
	file string // in the project
	look func(s *shell) *browsertest.Page
}

// pictures are all of the page's, by name.
var pictures = map[string]func(s *shell) *browsertest.Page{
	"report.png": func(s *shell) *browsertest.Page {
		p := browsertest.Open(s, "file://"+filepath.Join(s.cmd.Dir, "plan.html"), browsertest.View{})
		p.Says("which no schedule that is in time can beat", "01-scalarprod")
		return p
	},
	"job.png": func(s *shell) *browsertest.Page {
		p := s.signIn()
		p.Go("http://127.0.0.1:8090/jobs/1")
		p.Says("default clocks", "COMPLETED")
		return p
	},
	"savings.png": func(s *shell) *browsertest.Page {
		p := browsertest.Open(s, "file://"+filepath.Join(s.cmd.Dir, "savings.html"), browsertest.View{})
		p.Says("measured", "held out")
		return p
	},
}

// signIn opens epd's pages as the lab's administrator.
func (s *shell) signIn() *browsertest.Page {
	s.Helper()
	line, err := os.ReadFile("/tmp/epplan-lab/etc/web-tokens")
	if err != nil {
		s.Fatal(err)
	}
	words := strings.Fields(string(line))
	p := browsertest.Open(s, "http://127.0.0.1:8090/", browsertest.View{})
	p.Fill("input[name=token]", words[len(words)-1])
	p.Follow("form button")
	return p
}

// picturesBelow returns the pictures between a block and the next one.
func picturesBelow(text *doctest.Page, b *doctest.Block) []picture {
	var found []picture
	blocks, _ := text.Blocks()
	until := len(text.Lines) + 1
	for _, other := range blocks {
		if other.Line > b.Line && other.Line < until {
			until = other.Line
		}
	}
	for _, l := range text.Links() {
		if l.Image && l.Line > b.Line && l.Line < until {
			found = append(found, picture{file: l.File, look: pictures[filepath.Base(l.File)]})
		}
	}
	return found
}

// look looks at what a picture shows, and takes it anew with -update.
func (s *shell) look(p picture) {
	s.Helper()
	if p.look == nil {
		s.Fatalf("%s: nothing says what %s shows", page, p.file)
	}
	shown := p.look(s)
	defer shown.Leave()
	if !*update {
		return
	}
	folder := s.TempDir()
	s.Setenv(browsertest.ScreenshotsEnv, folder)
	shown.Screenshot("tutorial")
	taken, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil || len(taken) != 1 {
		s.Fatalf("%d pictures of %s: %v", len(taken), p.file, err)
	}
	to := filepath.Join(shareddata.Root(s), p.file)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := crop(taken[0], to); err != nil {
		s.Fatal(err)
	}
}

// mostHeight is how much of a page a picture shows, in pixels.
const mostHeight = 1100

// crop keeps the top of a picture.
func crop(from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	whole, err := png.Decode(file)
	if err != nil {
		return err
	}
	bounds := whole.Bounds()
	bounds.Max.Y = min(bounds.Max.Y, mostHeight)
	top := image.NewRGBA(bounds)
	draw.Draw(top, bounds, whole, bounds.Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, top); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}
