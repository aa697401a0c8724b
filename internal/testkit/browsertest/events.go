package browsertest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// events are what went wrong on a page, as the browser tells it.
type events struct {
	origin string

	mu       sync.Mutex
	problems []string
	asked    map[network.RequestID]string // requests by what they asked for
	wrong    map[network.RequestID]bool   // pages that were answered with an error's status
}

func newEvents(address string) *events {
	return &events{
		origin: origin(address), asked: make(map[network.RequestID]string),
		wrong: make(map[network.RequestID]bool),
	}
}

// Problems returns what went wrong on the page so far, in order: what it wrote to its
// console, what it threw, and requests that failed or asked somebody else.
func (p *Page) Problems() []string {
	p.events.mu.Lock()
	defer p.events.mu.Unlock()
	return slices.Clone(p.events.problems)
}

// note notes an event of the tab.
func (e *events) note(event any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		e.asked[event.RequestID] = event.Request.URL
		if !e.own(event.Request.URL) {
			e.add("it asks somebody else: %s", event.Request.URL)
		}
	case *network.EventWebSocketCreated:
		if !e.own(event.URL) {
			e.add("it asks somebody else: %s", event.URL)
		}
	case *network.EventResponseReceived:
		if event.Response.Status < 400 {
			break
		}
		if event.Type == network.ResourceTypeDocument { // the page says it itself
			e.wrong[event.RequestID] = true
			break
		}
		e.add("%s: status %d", event.Response.URL, event.Response.Status)
	case *network.EventLoadingFailed:
		if !event.Canceled { // leaving a page ends what it was asking
			e.add("%s: %s", e.asked[event.RequestID], event.ErrorText)
		}
	case *runtime.EventConsoleAPICalled:
		e.console(event)
	case *runtime.EventExceptionThrown:
		e.add("exception: %s", event.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		said := event.Entry.Level == log.LevelError || event.Entry.Level == log.LevelWarning
		if said && !e.wrong[event.Entry.NetworkRequestID] {
			e.add("%s: %s %s", event.Entry.Level, event.Entry.Text, event.Entry.URL)
		}
	}
}

// console notes a call of console.error, warn or assert.
func (e *events) console(event *runtime.EventConsoleAPICalled) {
	switch event.Type { //nolint:exhaustive // the rest is no problem
	case runtime.APITypeError, runtime.APITypeWarning, runtime.APITypeAssert:
		words := make([]string, len(event.Args))
		for i, arg := range event.Args {
			words[i] = string(arg.Value) + arg.Description
		}
		e.add("console.%s: %s", event.Type, strings.Join(words, " "))
	}
}

func (e *events) add(format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

// own reports whether an address is the page's own: of its origin, or within it.
func (e *events) own(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return u.Scheme == "data" || u.Scheme == "blob" || u.Scheme == "about" || origin(address) == e.origin
}

// origin returns an address's scheme, host and port; of a file it is the file: a
// page that is one file asks for no other.
func origin(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return address
	case u.Scheme == "file":
		return "file://" + u.Path
	}
	return u.Scheme + "://" + u.Host
}

// quote returns a text, or a list of texts, as JavaScript has it.
func quote[T string | []string](text T) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // text is never what JSON can't hold
	}
	return string(quoted)
}
