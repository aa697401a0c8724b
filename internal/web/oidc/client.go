package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	library "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/queue"
)

// Bounds of what the issuer is asked and says.
const (
	requestTimeout = 5 * time.Second
	loginTimeout   = 10 * time.Second // of all requests of one step
	maxAnswer      = 1 << 20          // bytes
	maxAsking      = 8                // steps at a time
	retryAfter     = 10 * time.Second // an issuer that didn't answer is left alone for so long
	keepProvider   = time.Hour        // its addresses are asked again then
	maxErrorText   = 300
)

// Client logs people in. Its methods may be used by several goroutines.
type Client struct {
	settings func() config.OIDC
	now      func() time.Time
	http     *http.Client
	sealer   *sealer
	asking   chan struct{}

	mu       sync.Mutex // held while the issuer's addresses are asked for
	of       string     // the issuer of what follows
	provider *library.Provider
	failed   error // why there is none
	tried    time.Time
}

// New returns a client for the issuer of the settings in force; now may be nil.
func New(settings func() config.OIDC, now func() time.Time) *Client {
	if now == nil {
		now = time.Now
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: requestTimeout}).DialContext,
		TLSHandshakeTimeout: requestTimeout, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true,
	}
	return &Client{
		settings: settings, now: now, sealer: newSealer(), asking: make(chan struct{}, maxAsking),
		http: &http.Client{
			Transport: boundedTransport{transport}, Timeout: requestTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// boundedTransport returns answers whose end is an error if they are too long.
type boundedTransport struct{ inner http.RoundTripper }

// RoundTrip sends a request.
func (b boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.inner.RoundTrip(r)
	if err == nil {
		response.Body = &boundedBody{response.Body, maxAnswer}
	}
	return response, err //nolint:wrapcheck // the client's caller wraps it
}

// boundedBody is a body of which only so many bytes may be read.
type boundedBody struct {
	io.ReadCloser
	left int
}

var errTooLong = fmt.Errorf("the answer has more than %d bytes", maxAnswer)

// Read reads a part of the body.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	return n, err //nolint:wrapcheck // io.EOF must stay
}

// refusedError returns an error with what the page says, and what epd's log does.
func refusedError(status int, text string, cause error) error {
	return &login.IssuerError{Status: status, Text: text, Cause: cause}
}

// unreachableError returns the error of an issuer that doesn't answer as it should.
func unreachableError(cause error) error {
	return refusedError(
		http.StatusServiceUnavailable,
		"The site's login doesn't answer now. Try again in a moment; "+
			"epd's log says why.",
		cause,
	)
}

// acquireSlot waits for a place among those who ask the issuer, and bounds how long they do.
func (c *Client) acquireSlot(ctx context.Context) (context.Context, func(), error) {
	select {
	case c.asking <- struct{}{}:
	default:
		return nil, nil, refusedError(
			http.StatusServiceUnavailable,
			"Too many people log in at once. Try again in a "+
				"moment.",
			nil,
		)
	}
	ctx, cancel := context.WithTimeout(library.ClientContext(ctx, c.http), loginTimeout)
	return ctx, func() { cancel(); <-c.asking }, nil
}

// discover returns the issuer with its addresses, which are asked for if they aren't known.
func (c *Client) discover(ctx context.Context, o *config.OIDC) (*library.Provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	age := now.Sub(c.tried)
	switch {
	case c.of != o.Issuer:
		c.provider = nil
	case c.failed != nil && age >= 0 && age < retryAfter:
		return nil, c.failed
	case c.provider != nil && age < keepProvider:
		return c.provider, nil
	}
	p, err := library.NewProvider(ctx, o.Issuer)
	if err == nil {
		err = checkEndpoints(p, o)
	}
	c.of, c.tried, c.failed = o.Issuer, now, nil
	if err == nil {
		c.provider = p
		return p, nil
	}
	if c.provider != nil { // its addresses of an hour ago will do
		return c.provider, nil
	}
	c.failed = unreachableError(shortError(err))
	return nil, c.failed
}

// checkEndpoints refuses addresses to which a browser or the secret must not be sent.
func checkEndpoints(p *library.Provider, o *config.OIDC) error {
	issuer, err := url.Parse(o.Issuer)
	if err != nil {
		return fmt.Errorf("the issuer's address: %w", err)
	}
	var keys struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&keys); err != nil {
		return fmt.Errorf("the issuer's addresses: %w", err)
	}
	for _, text := range []string{p.Endpoint().AuthURL, p.Endpoint().TokenURL, keys.Keys} {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || issuer.Scheme != "http") {
			return fmt.Errorf("the issuer names the address %q, want one of https", text)
		}
	}
	return nil
}

// oauthConfig returns the client as the issuer knows it.
func oauthConfig(p *library.Provider, o *config.OIDC, redirect string) (*oauth2.Config, error) {
	c := &oauth2.Config{
		ClientID: o.ClientID, Endpoint: p.Endpoint(), RedirectURL: redirect,
		Scopes: []string{library.ScopeOpenID, "profile"},
	}
	if o.Claim == emailClaim {
		c.Scopes = append(c.Scopes, emailClaim)
	}
	c.Scopes = append(c.Scopes, o.Scopes...)
	if o.SecretFile == "" {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		return c, nil
	}
	secret, err := login.ReadSecretFile(o.SecretFile)
	if err != nil {
		return nil, refusedError(
			http.StatusServiceUnavailable,
			"epd can't use its secret for the site's login. Its log "+
				"says why.",
			err,
		)
	}
	c.ClientSecret = secret
	var can struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := p.Claims(&can); err != nil {
		return nil, unreachableError(shortError(err))
	}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // what all have that don't say otherwise
	if len(can.Methods) > 0 && !slices.Contains(can.Methods, "client_secret_basic") {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return c, nil
}

// shortError returns an error whose text fits a log: the issuer's answers are in some.
func shortError(err error) error {
	text := queue.Printable(err.Error())
	if len(text) <= maxErrorText && text == err.Error() {
		return err
	}
	return errors.New(text[:min(len(text), maxErrorText)] + "…")
}
