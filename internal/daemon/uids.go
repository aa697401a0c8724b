package daemon

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Subordinate uids: what one user may take on, as in containers.
const (
	subordinateFile = "/etc/subuid"
	subordinateFor  = time.Minute // the file is looked at again
	maxSubordinate  = 1 << 20     // bytes of it
	// firstSubordinate is the first uid that is given out so, and rangeOfUIDs how many a user gets, unless
	// login.defs says something else.
	firstSubordinate = 100_000
	rangeOfUIDs      = 1 << 16
)

// subordinateUIDs knows whose uids are whose.
type subordinateUIDs struct {
	path string // empty: subordinateFile

	mu     sync.Mutex
	looked time.Time
	ranges []uidsOf
}

// uidsOf are the subordinate uids of a user.
type uidsOf struct {
	user        string
	first, last uint64
}

// owner returns who is counted for a uid: itself, or the user whose subordinate it is.
func (s *subordinateUIDs) owner(uid uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.looked) >= subordinateFor {
		s.looked = now
		s.read()
	}
	for _, r := range s.ranges {
		if uint64(uid) >= r.first && uint64(uid) <= r.last {
			return "uids of " + r.user
		}
	}
	return "uid " + strconv.FormatUint(uint64(uid), 10)
}

// read reads the file; of one that can't be read nothing is known.
func (s *subordinateUIDs) read() {
	s.ranges = nil
	path := s.path
	if path == "" {
		path = subordinateFile
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSubordinate {
		return
	}
	text, err := os.ReadFile(path) //nolint:gosec // root's own file
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSpace(line), ":")
		if len(words) != 3 { //nolint:mnd // a user, the first uid, how many
			continue
		}
		first, err := strconv.ParseUint(words[1], 10, 32)
		count, bad := strconv.ParseUint(words[2], 10, 32)
		if err == nil && bad == nil && count > 0 {
			s.ranges = append(s.ranges, uidsOf{words[0], first, first + count - 1})
		}
	}
}

// uidRange returns the range of uids that may be one user's; empty: a uid of the system, or of people.
func uidRange(uid uint32) string {
	if uid < firstSubordinate {
		return ""
	}
	return "uids of range " + strconv.FormatUint(uint64((uid-firstSubordinate)/rangeOfUIDs), 10)
}
