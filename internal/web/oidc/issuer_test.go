package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Of the client, as the issuer knows it.
const (
	clientID     = "epd-pages"
	clientSecret = "a-secret-of-the-tests"
)

// issuer is an OpenID Connect issuer that keeps its codes and asks for all that the
// protocol has it ask for.
type issuer struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	user    string
	keys    map[string]any // by id, those that it publishes
	signer  jose.SigningKey
	keyID   string
	claims  func(map[string]any)                              // changes what it says
	wrong   func(w http.ResponseWriter, r *http.Request) bool // answers in its place
	codes   map[string]url.Values                             // what somebody was sent with, by the code that isn't used yet
	secret  string                                            // empty: a public client
	methods []string
	asked   map[string]int // by path
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{
		t: t, user: "ada", secret: clientSecret, codes: make(map[string]url.Values), asked: make(map[string]int),
		keys: map[string]any{"one": key.Public()}, keyID: "one",
		signer: jose.SigningKey{Algorithm: jose.ES256, Key: key},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /keys", i.published)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked[r.URL.Path]++
		if i.wrong == nil || !i.wrong(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

// change does something while nobody asks the issuer.
func (i *issuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// scopes returns what the browser that was sent last is asked for.
func (i *issuer) scopes() (asked string) {
	i.change(func() {
		for _, q := range i.codes {
			asked = q.Get("scope")
		}
	})
	return asked
}

func (i *issuer) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Log(err)
	}
}

func (i *issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	i.answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256", "RS256", "none"},
		"token_endpoint_auth_methods_supported": i.methods,
	})
}

// authorize has the user logged in already, and sends the browser back with a code.
func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Get("response_type") != "code" || q.Get("client_id") != clientID || q.Get("state") == "" ||
		q.Get("nonce") == "" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" ||
		!strings.Contains(" "+q.Get("scope")+" ", " openid "):
		i.answer(w, http.StatusBadRequest, q)
	default:
		code := rand.Text()
		i.codes[code] = q
		back := q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
		http.Redirect(w, r, back, http.StatusFound)
	}
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	asked, ok := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	digest := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != clientID || secret != i.secret || basic == (i.methods != nil || i.secret == ""):
		i.answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
	case !ok || asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(digest[:]):
		i.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
	default:
		i.answer(w, http.StatusOK, map[string]any{
			"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": i.idToken(asked),
		})
	}
}

func (i *issuer) idToken(asked url.Values) string {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "sub": "subject-of-" + i.user, "aud": clientID, "nonce": asked.Get("nonce"),
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "preferred_username": i.user,
	}
	if i.claims != nil {
		i.claims(claims)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		i.t.Error(err)
	}
	signer, err := jose.NewSigner(i.signer, (&jose.SignerOptions{}).WithHeader("kid", i.keyID))
	if err != nil {
		i.t.Error(err)
		return ""
	}
	signed, err := signer.Sign(text)
	if err != nil {
		i.t.Error(err)
		return ""
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Error(err)
	}
	return token
}

func (i *issuer) published(w http.ResponseWriter, _ *http.Request) {
	set := jose.JSONWebKeySet{}
	for id, key := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key, KeyID: id, Use: "sig"})
	}
	i.answer(w, http.StatusOK, set)
}

// rotate has the issuer sign with a new key of another kind, which it publishes or not.
func (i *issuer) rotate(publish bool) {
	i.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}
	i.change(func() {
		i.signer, i.keyID = jose.SigningKey{Algorithm: jose.RS256, Key: key}, "two"
		if publish {
			i.keys["two"] = key.Public()
		}
	})
}
