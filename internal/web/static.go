package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/report/page"
)

//go:embed static/epd.js
var script []byte

//go:embed static/web.css
var ownStyle []byte

// staticAsset is a file that pages load.
type staticAsset struct {
	name, kind string
	text       []byte
	version    string // hash of the text
}

// assets are all of them. Nobody is asked who they are for these.
var assets = []staticAsset{
	newAsset("page.css", "text/css; charset=utf-8", []byte(page.Stylesheet())),
	newAsset("web.css", "text/css; charset=utf-8", ownStyle),
	newAsset("epd.js", "text/javascript; charset=utf-8", script),
}

func newAsset(name, kind string, text []byte) staticAsset {
	sum := sha256.Sum256(text)
	const bytesOfVersion = 6
	return staticAsset{name, kind, text, hex.EncodeToString(sum[:bytesOfVersion])}
}

// staticHref returns the address of an asset: another one when the text is another.
func staticHref(name string) string {
	for i := range assets {
		if assets[i].name == name {
			return "/static/" + name + "?v=" + assets[i].version
		}
	}
	return ""
}

func (s *Site) static(w http.ResponseWriter, r *http.Request) {
	for i := range assets {
		a := &assets[i]
		if a.name != r.PathValue("file") {
			continue
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("ETag", `"`+a.version+`"`)
		if strings.HasSuffix(r.URL.RawQuery, a.version) {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.text))
		return
	}
	s.showError(w, r, &pageError{status: http.StatusNotFound, text: "There is no such file."})
}
