// Package oidc has people log in at the site's OpenID Connect issuer, by an authorization code
// with state, nonce and PKCE. epd keeps nothing of an attempt: the browser brings it back,
// sealed. The issuer is asked when the first one logs in, so that epd starts without it.
package oidc
