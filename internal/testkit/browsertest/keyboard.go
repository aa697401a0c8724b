package browsertest

import "strings"

// Stop is an element that the Tab key came to.
type Stop struct {
	// Name is what the element is called: its label, or what it says.
	Name string `json:"name"`
	// Kind is its tag, such as a, button, input or div.
	Kind string `json:"kind"`
	// Ring reports whether one sees that it has the focus.
	Ring bool `json:"ring"`
	// Shown reports whether it is on the screen.
	Shown bool `json:"shown"`
	// Path tells elements of the same name apart.
	Path string `json:"path"`
}

// focused describes the element that has the focus, or is null.
const focused = `(() => {
	const e = document.activeElement
	if (!e || e === document.body || e === document.documentElement) return null
	const style = getComputedStyle(e), box = e.getBoundingClientRect()
	const label = e.getAttribute('aria-label') || (e.labels && e.labels[0] && e.labels[0].innerText) ||
		e.textContent || e.getAttribute('title') || e.value || ''
	const path = []
	for (let n = e; n && n.parentNode; n = n.parentNode) path.unshift([...n.parentNode.children].indexOf(n))
	return {
		name: label.trim().replace(/\s+/g, ' ').slice(0, 80),
		kind: e.tagName.toLowerCase(),
		ring: (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none',
		shown: box.width > 1 && box.height > 1 && box.bottom > 0 && box.right > 0 &&
			box.top < innerHeight && box.left < innerWidth,
		path: path.join('.'),
	}
})()`

// Focused returns the element that has the focus; its Kind is "" when none has.
func (p *Page) Focused() Stop {
	p.Helper()
	var at *Stop
	p.Eval(focused, &at)
	if at == nil {
		return Stop{}
	}
	return *at
}

// still keeps the page from scrolling smoothly, which takes time, until it is
// told otherwise.
func (p *Page) still() (again func()) {
	view := p.view
	quiet := view
	quiet.ReducedMotion = true
	p.Show(quiet)
	return func() { p.Show(view) }
}

// TabOrder presses Tab from the page's beginning until the focus leaves the page
// or comes round, but at most so many times, and returns where it went. Each
// stop must have a name, be on the screen and show that it has the focus.
func (p *Page) TabOrder(most int) []Stop {
	p.Helper()
	defer p.still()()
	var done bool
	p.Eval(`(document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex'),
		scrollTo(0, 0), true)`, &done)
	var stops []Stop
	seen := make(map[string]bool)
	for range most {
		p.Press("\t")
		at := p.Focused()
		if at.Kind == "" || seen[at.Path] {
			break
		}
		seen[at.Path] = true
		stops = append(stops, at)
		switch {
		case at.Name == "":
			p.Errorf("the keyboard comes to a %s without a name (%s)", at.Kind, at.Path)
		case !at.Shown:
			p.Errorf("the keyboard comes to %q (%s), which isn't on the screen", at.Name, at.Kind)
		case !at.Ring:
			p.Errorf("%q (%s) doesn't show that it has the focus", at.Name, at.Kind)
		}
	}
	return stops
}

// SkipsToMain demands that the first stop of a newly loaded page is a link past
// its navigation: once followed, Tab goes on within the link's target, or after it.
func (p *Page) SkipsToMain() {
	p.Helper()
	defer p.still()()
	p.Reload()
	p.Press("\t")
	if at := p.Focused(); at.Kind != "a" || !at.Shown || !strings.Contains(strings.ToLower(at.Name), "skip") {
		p.Errorf("the first stop is %+v, not a link that skips to the content", at)
		return
	}
	p.Press("\r")
	p.WaitFor(`location.hash !== '' && document.activeElement === document.querySelector(location.hash)`)
	p.Press("\t")
	var within bool
	p.Eval(`(() => {
		const target = document.querySelector(location.hash), e = document.activeElement
		if (e === document.body) return true // the content has nothing to stop at
		return target === e || target.contains(e) ||
			!!(target.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)
	})()`, &within)
	if !within {
		p.Errorf("after the skip link the keyboard comes to %+v, before the content", p.Focused())
	}
}
