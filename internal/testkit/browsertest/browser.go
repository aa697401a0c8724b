package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// Bounds of what is waited for: on a busy machine only a hang takes so long.
const (
	startTime = 3 * time.Minute // of a browser
	pageTime  = 6 * time.Minute // of all that is done with one page
	waitTime  = time.Minute     // until something shows
)

// shared is the browser of this test binary.
var shared struct {
	sync.Mutex
	is *running
}

// running is a browser that runs.
type running struct {
	ctx  context.Context
	stop func()
}

// Run runs a package's tests and then ends its browser, if one was started:
//
//	func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }
func Run(m *testing.M) int {
	defer end()
	return m.Run()
}

// end stops the browser and removes its profile.
func end() {
	shared.Lock()
	defer shared.Unlock()
	if shared.is != nil {
		shared.is.stop()
		shared.is = nil
	}
}

// browser returns the one of this test binary. It needs Chromium.
func browser(tb testing.TB) context.Context {
	tb.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	shareddata.Need(tb, program != "", "pages need Chromium: scripts/test-packages.sh installs it")
	shared.Lock()
	defer shared.Unlock()
	if shared.is == nil {
		started, err := start(program)
		if err != nil {
			tb.Fatal(err)
		}
		shared.is = started
	}
	return shared.is.ctx
}

// start starts the browser: with a profile of its own, and nobody to talk to but
// this machine.
func start(program string) (*running, error) {
	profile, err := os.MkdirTemp("", "epplan-browser-")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("no-sandbox", true), // root has none
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("no-proxy-server", true),
		chromedp.UserDataDir(profile),
		chromedp.Env("HOME="+profile),
		chromedp.WSURLReadTimeout(startTime),
	)
	allocator, kill := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, leave := chromedp.NewContext(allocator)
	stop := func() {
		leave()
		kill()
		_ = os.RemoveAll(profile)
	}
	if err := chromedp.Run(ctx); err != nil {
		stop()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return &running{ctx: ctx, stop: stop}, nil
}

// newTab opens an empty tab in a window and a profile of its own, until the test ends.
func newTab(tb testing.TB) context.Context {
	tb.Helper()
	parent := browser(tb)
	ask := cdp.WithExecutor(parent, chromedp.FromContext(parent).Browser)
	profile, err := target.CreateBrowserContext().Do(ask)
	if err != nil {
		tb.Fatalf("make a profile: %v", err)
	}
	tb.Cleanup(func() { _ = target.DisposeBrowserContext(profile).Do(ask) })
	window, err := target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(ask)
	if err != nil {
		tb.Fatalf("open a tab: %v", err)
	}
	tab, closeTab := chromedp.NewContext(parent, chromedp.WithTargetID(window))
	tb.Cleanup(closeTab)
	return tab
}
