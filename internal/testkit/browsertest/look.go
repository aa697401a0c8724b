package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// ScreenshotsEnv names the environment variable with the folder that takes
// pictures of the pages; without it there are none.
const ScreenshotsEnv = "EPPLAN_SCREENSHOTS"

// stops is how many stops of the keyboard are looked at on one page.
const stops = 30

// wide names elements that stick out to the right of the page: those whose own
// edge is beyond it and that are in no box that scrolls.
const wide = `(() => {
	const root = document.documentElement
	if (root.scrollWidth <= root.clientWidth) return []
	const out = []
	for (const e of document.body.querySelectorAll('*')) {
		if (e.getBoundingClientRect().right <= root.clientWidth + 0.5) continue
		let boxed = false
		for (let n = e.parentElement; n && n !== document.body; n = n.parentElement)
			if (getComputedStyle(n).overflowX !== 'visible') boxed = true
		if (!boxed) out.push(e.outerHTML.slice(0, 120))
	}
	return ['scrollWidth ' + root.scrollWidth + ' > ' + root.clientWidth, ...out.slice(0, 8)]
})()`

// FitsWidth demands that the page doesn't scroll sideways.
func (p *Page) FitsWidth() {
	p.Helper()
	var out []string
	p.Eval(wide, &out)
	if len(out) > 0 {
		p.Errorf("the page is wider than its window: %s", strings.Join(out, "; "))
	}
}

// scrolling names the boxes of a page in which something is wider than they are, also where it is folded.
const scrolling = `(() => {
	const folded = [...document.querySelectorAll('details:not([open])')]
	folded.forEach(d => d.open = true)
	const out = [...document.querySelectorAll('body *')].filter(e => e.clientWidth > 1 &&
		e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX)).map(e =>
		e.scrollWidth + ' > ' + e.clientWidth + ': ' + (e.ariaLabel || e.outerHTML.slice(0, 120)))
	folded.forEach(d => d.open = false)
	return out.slice(0, 8)
})()`

// ScrollsNowhere demands that nothing on the page scrolls sideways in a box of its own.
func (p *Page) ScrollsNowhere() {
	p.Helper()
	var out []string
	p.Eval(scrolling, &out)
	if len(out) > 0 {
		p.Errorf("parts of the page scroll sideways: %s", strings.Join(out, "; "))
	}
}

// Screenshot takes a picture of the whole page as it is shown, if
// [ScreenshotsEnv] names a folder for it.
func (p *Page) Screenshot(name string) {
	p.Helper()
	dir := os.Getenv(ScreenshotsEnv)
	if dir == "" {
		return
	}
	var picture []byte
	p.do("take a picture", chromedp.FullScreenshot(&picture, 100))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		p.Fatal(err)
	}
}

// Inspect opens a page and looks at it in all of its appearances: in light and
// dark, on a telephone, on paper, and without scripts. In each it must say the
// texts and fit the window's width, on a telephone without any part that scrolls; axe-core must find nothing serious, on the
// other screens by the rules that depend on those; the keyboard must reach its
// elements visibly. Pictures are called by
// the name. It returns the page, loaded anew as a desktop shows it in light
// colours, for what else there is to look at.
func Inspect(t *testing.T, name, address string, texts ...string) *Page {
	t.Helper()
	p := Open(t, address, View{})
	for _, look := range []struct {
		name string
		view View
	}{
		{"light", View{}},
		{"dark", View{Dark: true}},
		{"phone", View{Width: Phone, Dark: true, ReducedMotion: true}},
		{"print", View{Width: A4, Print: true}},
		{"noscript", View{NoScript: true}},
	} {
		t.Run(look.name, func(t *testing.T) { p.on(t).look(name+"-"+look.name, look.view, texts) })
	}
	p.Show(View{})
	p.Reload()
	return p
}

// on returns the page in a subtest.
func (p *Page) on(tb testing.TB) *Page {
	tb.Helper()
	other := *p
	other.TB = tb
	return &other
}

// look looks at a page in one view.
func (p *Page) look(name string, view View, texts []string) {
	p.Helper()
	p.Show(view)
	if view.NoScript {
		p.Reload()
	}
	p.Screenshot(name)
	p.Says(texts...)
	p.FitsWidth()
	switch {
	case view == View{}:
		p.NoBarriers()
		p.TabOrder(stops)
	case view.Width == Phone:
		p.ScrollsNowhere()
		p.NoBarriers("scrollable-region-focusable")
	case view.Dark:
		p.NoBarriers("color-contrast")
	}
}
