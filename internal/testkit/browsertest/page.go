package browsertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Widths of screens in CSS pixels.
const (
	Phone   = 375
	Desktop = 1280
	A4      = 718 // what its margins leave
)

// View is how a page is shown. The zero value is a desktop in light colours.
type View struct {
	Width         int // Desktop when 0
	Dark          bool
	Print         bool // as on paper
	ReducedMotion bool
	NoScript      bool
}

// Page is a tab that shows a page. Its methods end the test when something that
// must be there isn't.
type Page struct {
	testing.TB

	ctx    context.Context //nolint:containedctx // of the tab, which lives until the test ends
	events *events
	view   View
}

// Open opens an address in a tab of its own, in a view, and waits until it has
// loaded. When the test ends the tab is closed, and the test fails if the page
// wrote errors or warnings to its console, threw an exception, asked for
// something that failed, or asked anything of anybody but its own origin.
func Open(tb testing.TB, address string, view View) *Page {
	tb.Helper()
	p := OpenQuietly(tb, address, view)
	tb.Cleanup(func() {
		for _, problem := range p.Problems() {
			tb.Errorf("%s: %s", address, problem)
		}
	})
	return p
}

// OpenQuietly is [Open] for a test that looks at the page's problems itself.
func OpenQuietly(tb testing.TB, address string, view View) *Page {
	tb.Helper()
	tab := newTab(tb)
	ctx, cancel := context.WithTimeout(tab, pageTime)
	tb.Cleanup(cancel)
	p := &Page{TB: tb, ctx: ctx, events: newEvents(address)}
	chromedp.ListenTarget(tab, p.events.note)
	p.do("open a tab", network.Enable(), log.Enable(), runtime.Enable())
	p.Show(view)
	p.Go(address)
	return p
}

// Go follows an address in the same tab, and waits until it has loaded.
func (p *Page) Go(address string) {
	p.Helper()
	p.do("open "+address, chromedp.Navigate(address))
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.Helper()
	p.do("reload", chromedp.Reload())
}

// Leave leaves the page, which asks nothing any more: what serves it may stop before
// the test ends.
func (p *Page) Leave() {
	p.Helper()
	p.Go("about:blank")
}

// Show shows the page in a view from now on. Scripts that have run aren't
// undone by NoScript: that needs a reload.
func (p *Page) Show(view View) {
	p.Helper()
	p.view = view
	width, media, scheme, motion := int64(view.Width), "screen", "light", "no-preference"
	if width == 0 {
		width = Desktop
	}
	if view.Print {
		media = "print"
	}
	if view.Dark {
		scheme = "dark"
	}
	if view.ReducedMotion {
		motion = "reduce"
	}
	features := []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
		{Name: "prefers-reduced-motion", Value: motion},
	}
	p.do("show a view",
		emulation.SetDeviceMetricsOverride(width, 900, 1, false),
		emulation.SetEmulatedMedia().WithMedia(media).WithFeatures(features),
		emulation.SetScriptExecutionDisabled(view.NoScript))
}

// Eval evaluates a JavaScript expression on the page and reads what it is, or
// what it promises, into result.
func (p *Page) Eval(expression string, result any) {
	p.Helper()
	p.do("evaluate "+first(expression), chromedp.Evaluate(expression, result,
		func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
}

// Text returns what the page's body says, as it is shown.
func (p *Page) Text() string {
	p.Helper()
	var text string
	p.Eval(`document.body.innerText`, &text)
	return text
}

// Says demands that the page shows each of the texts. Letters' case and how
// lines break don't count.
func (p *Page) Says(texts ...string) {
	p.Helper()
	shown := plain(p.Text())
	for _, text := range texts {
		if !strings.Contains(shown, plain(text)) {
			p.Errorf("the page doesn't say %q; it says %.3000q", text, shown)
		}
	}
}

// Count returns how many elements a CSS selector finds.
func (p *Page) Count(selector string) int {
	p.Helper()
	var n int
	p.Eval(`document.querySelectorAll(`+quote(selector)+`).length`, &n)
	return n
}

// Click clicks the element that a CSS selector finds, and waits for nothing.
func (p *Page) Click(selector string) {
	p.Helper()
	p.soon("click "+selector, chromedp.Click(selector, chromedp.ByQuery))
}

// Follow clicks the element that a CSS selector finds, and waits until the page
// that this leads to has loaded.
func (p *Page) Follow(selector string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitTime)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(selector, chromedp.ByQuery)); err != nil {
		p.Fatalf("follow %s: %v", selector, err)
	}
}

// Fill sets the value of a field as if it had been typed.
func (p *Page) Fill(selector, text string) {
	p.Helper()
	p.set(selector, "")
	p.soon("fill "+selector, chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// Choose chooses an option of a list by its value.
func (p *Page) Choose(selector, value string) {
	p.Helper()
	p.set(selector, value)
}

// set gives a field a value, and demands that it takes it.
func (p *Page) set(selector, value string) {
	p.Helper()
	var taken bool
	p.Eval(`(() => {
		const e = document.querySelector(`+quote(selector)+`), value = `+quote(value)+`
		if (!e) return false
		e.value = value
		e.dispatchEvent(new Event('input', {bubbles: true}))
		e.dispatchEvent(new Event('change', {bubbles: true}))
		return e.value === value
	})()`, &taken)
	if !taken {
		p.Fatalf("%s doesn't take the value %q", selector, value)
	}
}

// Press presses a key, such as "\t" or "\r".
func (p *Page) Press(key string) {
	p.Helper()
	p.do("press a key", chromedp.KeyEvent(key))
}

// Type types a text where the focus is.
func (p *Page) Type(text string) {
	p.Helper()
	p.do("type "+text, chromedp.KeyEvent(text))
}

// WaitFor waits until a JavaScript expression is true on the page.
func (p *Page) WaitFor(condition string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitTime)
	defer cancel()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		var met bool // between two pages there is none to ask
		if err := chromedp.Run(ctx, chromedp.Evaluate("!!("+condition+")", &met)); err == nil && met {
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			p.Fatalf("waited in vain for %s; the page says %.2000q", first(condition), p.Text())
		}
	}
}

// do does something in the tab, which must succeed.
func (p *Page) do(what string, actions ...chromedp.Action) {
	p.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// soon does something with an element that must be there before long.
func (p *Page) soon(what string, actions ...chromedp.Action) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitTime)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// plain is text without its line breaks and its letters' case: style sheets
// change both.
func plain(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// first returns the first line of an expression, for messages.
func first(expression string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(expression), "\n")
	return line
}
