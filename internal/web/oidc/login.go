package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	library "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/web/login"
)

// emailClaim is a claim that anybody may fill in at some issuers, unless it is verified.
const emailClaim = "email"

const attemptLifetime = 10 * time.Minute

// Begin returns the address at the issuer where somebody logs in, and the attempt that the
// browser must bring back. The issuer sends the browser to redirect, and the login leads to
// next.
func (c *Client) Begin(ctx context.Context, redirect, next string) (address, sealed string, err error) {
	o := c.settings()
	ctx, leave, err := c.acquireSlot(ctx)
	if err != nil {
		return "", "", err
	}
	defer leave()
	p, err := c.discover(ctx, &o)
	if err != nil {
		return "", "", err
	}
	client, err := oauthConfig(p, &o, redirect)
	if err != nil {
		return "", "", err
	}
	a := &attempt{
		Issuer: o.Issuer, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Redirect: redirect, Next: next, Ends: c.now().Add(attemptLifetime),
	}
	if sealed, err = c.sealer.seal(a); err != nil {
		return "", "", err
	}
	address = client.AuthCodeURL(a.State, library.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	return address, sealed, nil
}

// Finish returns who logged in by what the issuer's redirect says, and where the login leads.
func (c *Client) Finish(ctx context.Context, sealed string, answer url.Values) (*login.IssuerLogin, error) {
	o := c.settings()
	a, err := c.checkAnswer(&o, sealed, answer)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := c.acquireSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := c.discover(ctx, &o)
	if err != nil {
		return nil, err
	}
	client, err := oauthConfig(p, &o, a.Redirect)
	if err != nil {
		return nil, err
	}
	tokens, err := client.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, exchangeError(err)
	}
	text, _ := tokens.Extra("id_token").(string)
	token, err := p.Verifier(&library.Config{ClientID: o.ClientID, Now: c.now}).Verify(ctx, text)
	if err == nil {
		err = checkToken(token, &o, a.Nonce)
	}
	if err != nil {
		return nil, refusedError(http.StatusForbidden, "What the site's login says of you can't be trusted; epd's "+
			"log says why.", shortError(err))
	}
	name, err := nameIn(token, o.Claim)
	if err != nil {
		return nil, refusedError(http.StatusForbidden, "The site's login states no name that epd can use; epd's "+
			"log says why.", shortError(err))
	}
	groups, err := groupsIn(token, &o)
	if err != nil {
		return nil, refusedError(http.StatusForbidden, "The site's login states groups that epd can't read; epd's log "+
			"says why.", shortError(err))
	}
	return &login.IssuerLogin{Issuer: o.Issuer, Name: name, Groups: groups, Next: a.Next}, nil
}

// exchangeError returns the error of a code that the issuer took no token for.
func exchangeError(err error) error {
	wrong, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok && wrong.ErrorCode == "invalid_grant":
		return refusedError(http.StatusForbidden, "That login was used already, or took too long. Log in again.",
			shortError(err))
	case ok && wrong.ErrorCode != "":
		return refusedError(http.StatusServiceUnavailable, "The site's login refused epd, whose log says why.",
			shortError(err))
	}
	return unreachableError(shortError(err))
}

// checkAnswer returns the attempt that an answer belongs to.
func (c *Client) checkAnswer(o *config.OIDC, sealed string, answer url.Values) (*attempt, error) {
	a, err := c.sealer.open(sealed)
	switch {
	case err != nil:
	case c.now().After(a.Ends):
		err = errors.New("it began too long ago")
	case a.Issuer != o.Issuer:
		err = errors.New("it is another issuer's")
	case len(answer["state"]) != 1 ||
		subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(a.State)) != 1:
		err = errors.New("wrong state")
	case answer.Has("iss") && answer.Get("iss") != o.Issuer: // RFC 9207
		err = errors.New("another issuer answers")
	}
	switch {
	case err != nil:
		return nil, refusedError(http.StatusForbidden, "This login isn't one of this browser's, or took too long. Log in "+
			"again, by the same address of this site.", err)
	case answer.Get("error") != "":
		return nil, refusedError(http.StatusForbidden, "The site's login refused it.",
			shortError(errors.New("the issuer says "+answer.Get("error"))))
	case answer.Get("code") == "":
		return nil, refusedError(http.StatusBadRequest, "The site's login said nothing.", errors.New("no code"))
	}
	return a, nil
}

// checkToken checks what the library leaves to its caller.
func checkToken(token *library.IDToken, o *config.OIDC, nonce string) error {
	var claims struct {
		Party string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return err //nolint:wrapcheck // says all
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return errors.New("the token has the wrong nonce")
	case token.Subject == "":
		return errors.New("the token has no subject")
	case claims.Party != o.ClientID && (claims.Party != "" || len(token.Audience) > 1):
		return fmt.Errorf("the token was made for %q, want %q", claims.Party, o.ClientID)
	}
	return nil
}

// nameIn returns the name that a claim states.
func nameIn(token *library.IDToken, claim string) (string, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return "", err //nolint:wrapcheck // says all
	}
	name, ok := claims[claim].(string)
	switch {
	case !ok:
		return "", fmt.Errorf("the token has no text as claim %q", claim)
	case !config.IsLoginName(name):
		return "", fmt.Errorf("the claim %q has other than letters, digits and . _ - + @, or more than 64: %q",
			claim, name)
	case claim == emailClaim && claims["email_verified"] != true:
		return "", errors.New("the address of the claim email isn't verified")
	}
	return name, nil
}

// groupsIn returns those of the groups that a token states, a text or a list, that have a role.
func groupsIn(token *library.IDToken, o *config.OIDC) ([]string, error) {
	withRole := slices.Concat(o.AdminGroups, o.ReaderGroups)
	if len(withRole) == 0 {
		return nil, nil
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	var stated []any
	switch v := claims[o.GroupsClaim].(type) {
	case nil: // no groups, or the issuer states none
	case string:
		stated = []any{v}
	case []any:
		stated = v
	default:
		return nil, fmt.Errorf("the claim %q is neither a text nor a list of texts", o.GroupsClaim)
	}
	return slices.DeleteFunc(withRole, func(g string) bool { return !slices.Contains(stated, any(g)) }), nil
}
