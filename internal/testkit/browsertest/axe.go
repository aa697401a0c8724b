package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// Barrier is what axe-core found to be wrong with an element of a page.
type Barrier struct {
	// Rule is axe-core's name of the rule, such as color-contrast.
	Rule string `json:"rule"`
	// Impact is minor, moderate, serious or critical.
	Impact string `json:"impact"`
	// Help says what the rule wants.
	Help string `json:"help"`
	// HTML is the element's beginning.
	HTML string `json:"html"`
	// Why says what is wrong with it.
	Why string `json:"why"`
}

// String says what is wrong, and with what.
func (b Barrier) String() string {
	return fmt.Sprintf("%s (%s): %s: %s: %s", b.Rule, b.Impact, b.Help, b.HTML, b.Why)
}

// Serious reports whether the barrier keeps people out.
func (b Barrier) Serious() bool { return b.Impact == "serious" || b.Impact == "critical" }

// axeRun has axe-core look at the page by some rules, all of them where none is
// named, and makes one row of each element.
const axeRun = `(rules => axe.run(document, {resultTypes: ['violations'], preload: false, ...(rules.length ? {runOnly: rules} : {})}).then(r =>
	r.violations.flatMap(v => v.nodes.map(n => ({rule: v.id, impact: n.impact || v.impact || '', help: v.help,
		html: n.html.slice(0, 300), why: (n.failureSummary || '').replace(/\s+/g, ' ')})))))`

// Barriers returns what axe-core finds on the page as it is shown now, by the named
// rules; by all of them without any.
func (p *Page) Barriers(rules ...string) []Barrier {
	p.Helper()
	script, err := axeScript()
	shareddata.Need(p, err == nil, fmt.Sprintf("axe-core isn't there: scripts/axe.sh fetches it (%v)", err))
	var loaded bool
	if p.Eval(`typeof axe === 'object'`, &loaded); !loaded {
		p.Eval(script+"\n;typeof axe === 'object'", &loaded)
	}
	var found []Barrier
	p.Eval(axeRun+"("+quote(append([]string{}, rules...))+")", &found)
	return found
}

// NoBarriers demands that axe-core finds nothing serious or critical on the
// page as it is shown now, by the named rules or by all of them. The rest is
// logged.
func (p *Page) NoBarriers(rules ...string) {
	p.Helper()
	for _, b := range p.Barriers(rules...) {
		if b.Serious() {
			p.Error(b)
		} else {
			p.Log(b)
		}
	}
}

// axeScript is axe-core's code, from the nearest folder above that has it.
var axeScript = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		code, err := os.ReadFile(filepath.Join(dir, ".cache", "axe", "axe.min.js"))
		if err == nil {
			return string(code), nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", fmt.Errorf("no folder above has .cache/axe/axe.min.js: %w", os.ErrNotExist)
		}
		dir = above
	}
})
