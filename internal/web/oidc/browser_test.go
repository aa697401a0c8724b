package oidc_test

import (
	"os"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

// The issuer is another site to a browser, which takes strict cookies along only from pages
// of the site that they are of. The issuer logs in without a click, as it does for those who
// are logged in there.
func TestABrowserIsLoggedInWhenItComesBackFromTheIssuer(t *testing.T) {
	p := openPages(t)
	address := strings.Replace(p.URL, "127.0.0.1", "localhost", 1)
	page := browsertest.OpenQuietly(t, address+"/login?next=/nowhere", browsertest.View{})
	page.Follow(`a[href^="/login/oidc"]`)
	page.WaitFor(`document.body.innerText.includes("There is no such page")`)
	page.Says("You are ada, user.")
}
