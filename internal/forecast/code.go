package forecast

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	words "github.com/epplan/epplan/internal/predict/source"
)

// Bounds of what users may tell of their code.
const (
	maxCodesOfUser = 32
	maxAsksOfUser  = 4 // texts that wait for a server, which may take minutes for each
	maxCodes       = 4096
	codeTrust      = 24 * time.Hour
	maxCodeText    = 64 << 10 // bytes: what an embedding server is sent
	maxCodeFiles   = 1000
	maxCoordinate  = 1e3 // of a vector: logarithms and counts
)

// codes are what users told of the code of jobs that they didn't submit yet.
type codes struct {
	mu   sync.Mutex
	of   map[string]*announced // by source
	asks map[uint32]int        // of users, that servers weren't asked yet
}

// announced is what was told of a job's code.
type announced struct {
	uid       uint32
	at        time.Time
	vector    []float32
	digest    []byte
	submitted bool // a job of it was submitted
}

// put keeps what a user told, in place of the oldest where there is too much.
func (c *codes) put(source string, a *announced) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]*announced)
	}
	if _, there := c.of[source]; !there {
		c.makeRoom(a)
	}
	c.of[source] = a
}

func (c *codes) makeRoom(a *announced) {
	mine := 0
	var oldest, myOldest string
	for source, old := range c.of {
		if a.at.Sub(old.at) > codeTrust {
			delete(c.of, source)
			continue
		}
		if o := c.of[oldest]; o == nil || old.at.Before(o.at) {
			oldest = source
		}
		if old.uid == a.uid {
			mine++
			if o := c.of[myOldest]; o == nil || old.at.Before(o.at) {
				myOldest = source
			}
		}
	}
	if mine >= maxCodesOfUser {
		delete(c.of, myOldest)
	} else if len(c.of) >= maxCodes {
		delete(c.of, oldest)
	}
}

// get returns what was told of a job's code; nil: nothing.
func (c *codes) get(source string, now time.Time, submitted bool) (vector []float32, digest []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.of[source]
	if a == nil || now.Sub(a.at) > codeTrust {
		return nil, nil
	}
	a.submitted = a.submitted || submitted
	return a.vector, a.digest
}

// tryBegin reports whether one more text of a user may wait for a server: others' wait, too.
func (c *codes) tryBegin(uid uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks[uid] >= maxAsksOfUser {
		return false
	}
	if c.asks == nil {
		c.asks = make(map[uint32]int)
	}
	c.asks[uid]++
	return true
}

// end ends what ask began.
func (c *codes) end(uid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks[uid]--; c.asks[uid] <= 0 {
		delete(c.asks, uid)
	}
}

// CheckCode says what is impossible about a code's features.
func CheckCode(c *epdapi.Code) error {
	switch {
	case len(c.Vector) != words.Dimensions:
		return fmt.Errorf("a vector of %d coordinates, want %d", len(c.Vector), words.Dimensions)
	case slices.ContainsFunc(c.Vector, isImpossible):
		return fmt.Errorf("a vector with coordinates beyond %g", maxCoordinate)
	case c.Files < 1 || c.Files > maxCodeFiles || len(c.Digest) > 64 || len(c.Text) > maxCodeText:
		return fmt.Errorf("code of %d files, a digest of %d bytes and a text of %d",
			c.Files, len(c.Digest), len(c.Text))
	}
	return nil
}

// isImpossible reports whether a coordinate can't be one of a vector; NaN can't.
func isImpossible(x float32) bool { return !(math.Abs(float64(x)) <= maxCoordinate) }

// Announce keeps what a user tells of the code of a job that is to be submitted, under
// the sources by which it may be known then, and asks servers about its text, if that
// is told, too. False: nothing is kept, as predictions are off.
func (f *Forecaster) Announce(uid uint32, sources []string, code *epdapi.Code) bool {
	if !f.options.Settings().Enabled {
		return false
	}
	now := f.options.Clock()
	a := &announced{uid: uid, at: now, digest: []byte(code.Digest)}
	if f.servers().embed == nil {
		a.vector = code.Vector
	}
	for _, source := range sources {
		if before, _ := f.codes.get(source, now, false); a.vector == nil && code.Text == "" && before != nil {
			continue // the server's embedding is there already
		}
		f.codes.put(source, a)
	}
	if code.Text != "" && f.servers().any() && f.codes.tryBegin(uid) {
		if !f.enqueue(work{script: &scriptWork{source: sources[0], text: string(code.Text), announced: a}}) {
			f.codes.end(uid)
		}
	}
	return true
}

// WantsText reports whether the text of a code is wanted, too.
func (f *Forecaster) WantsText(code *epdapi.Code) bool {
	return code.Text == "" && f.servers().any()
}
