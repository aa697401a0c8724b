package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/http"
	"strconv"

	"github.com/epplan/epplan/internal/web/login"
)

// tokenField is the name of the hidden field that binds a form to its viewer.
const tokenField = "form_token"

// formKeys make tokens of forms. The key is of this process: forms of an earlier
// one are refused.
type formKeys struct{ key [32]byte }

func newFormKeys() *formKeys {
	k := &formKeys{}
	_, _ = rand.Read(k.key[:]) // never fails
	return k
}

// token returns what forms of a viewer carry.
func (k *formKeys) token(v login.Viewer) string {
	mac := hmac.New(sha256.New, k.key[:])
	who := "nobody"
	switch {
	case v.Session != "":
		who = "session " + v.Session
	case v.UID >= 0:
		who = "uid " + strconv.FormatInt(v.UID, 10)
	}
	_, _ = mac.Write([]byte(who))
	return hex.EncodeToString(mac.Sum(nil))
}

// check reports whether a form that was sent is one of the viewer's.
func (k *formKeys) check(r *http.Request, v login.Viewer) bool {
	return hmac.Equal([]byte(r.PostFormValue(tokenField)), []byte(k.token(v)))
}

// hidden returns the field itself.
func (k *formKeys) hidden(v login.Viewer) template.HTML {
	return template.HTML(`<input type="hidden" name="` + tokenField + `" value="` + k.token(v) + `">`) //nolint:gosec // hexadecimal
}
