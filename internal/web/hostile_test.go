package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/hostiletest"
	"github.com/epplan/epplan/spelling"
)

// spoilt is a cluster with a hostile text in one place of what it answers.
type spoilt struct {
	*cluster
	by *hostiletest.Spoiler
}

// spoil returns an answer with the text in its place; as it was where it can't be one then.
func spoil[T any](s spoilt, answer *T, err error) (*T, error) {
	var value any
	one := new(T)
	text, _ := json.Marshal(answer)
	_ = json.Unmarshal(text, &value)
	text, _ = json.Marshal(s.by.JSON(value))
	if err != nil || json.Unmarshal(text, one) != nil {
		return answer, err
	}
	return one, nil
}

func (s spoilt) Overview(ctx context.Context) (*epdapi.Overview, error) {
	v, err := s.cluster.Overview(ctx)
	return spoil(s, v, err)
}

func (s spoilt) Queue(ctx context.Context) (*epdapi.Queue, error) {
	v, err := s.cluster.Queue(ctx)
	return spoil(s, v, err)
}

func (s spoilt) Jobs(ctx context.Context, query url.Values) (*epdapi.JobPage, error) {
	v, err := s.cluster.Jobs(ctx, query)
	return spoil(s, v, err)
}

func (s spoilt) Job(ctx context.Context, job string) (*epdapi.JobView, error) {
	v, err := s.cluster.Job(ctx, job)
	return spoil(s, v, err)
}

func (s spoilt) Nodes(ctx context.Context) (*epdapi.NodeList, error) {
	v, err := s.cluster.Nodes(ctx)
	return spoil(s, v, err)
}

func (s spoilt) Levers(ctx context.Context) (*epdapi.Levers, error) {
	v, err := s.cluster.Levers(ctx)
	return spoil(s, v, err)
}

func (s spoilt) Models(ctx context.Context) (*epdapi.ModelList, error) {
	v, err := s.cluster.Models(ctx)
	return spoil(s, v, err)
}

func (s spoilt) Usage(
	ctx context.Context, since, until time.Time, by string, own bool,
) (*epdapi.Usage, error) {
	v, err := s.cluster.Usage(ctx, since, until, by, own)
	return spoil(s, v, err)
}

func (s spoilt) Status(ctx context.Context) (*epdapi.Status, error) {
	v, err := s.cluster.Status(ctx)
	return spoil(s, v, err)
}

// Whatever users, nodes and administrators wrote in any place of what a page shows: it is text there.
func TestNoTextDoesAnythingOnAPage(t *testing.T) {
	for path, every := range map[string]int{
		"/": 7, "/queue": 3, "/jobs": 5, "/jobs/4711": 3, "/nodes": 5, "/nodes/n1": 5, "/workloads": 1, "/month": 1,
		"/whatif": 1, "/admin": 1,
	} {
		t.Run(path, func(t *testing.T) {
			hostiletest.Places(every, func(s *hostiletest.Spoiler) {
				p := look(t, spoilt{newCluster(), s}, admin, path)
				if s.Place == 0 && (p.status != http.StatusOK || s.Seen == 0 && path != "/whatif") {
					t.Fatalf("status %d, %d texts", p.status, s.Seen)
				}
				text := sentByForm.ReplaceAllString(p.text, "")
				if i := strings.IndexFunc(text, actsInText); i >= 0 {
					t.Errorf("place %d: %+q", s.Place, text[max(0, i-60):min(len(text), i+20)])
				}
				wellMade(t, path, &p)
				p.each(func(tag string, a map[string]string, n *html.Node) {
					if tag == "img" || tag == "script" && !strings.HasPrefix(a["src"], "/static/") {
						t.Errorf("place %d: a text became an element: %s", s.Place, words(n.Parent))
					}
				})
			})
		})
	}
}

// sentByForm is what isn't shown, but sent as it is.
var sentByForm = regexp.MustCompile(` value="[^"]*"`)

// actsInText reports whether a character isn't shown, but for those that pages are written with.
func actsInText(r rune) bool { return r != '\n' && r != '\t' && r != '\u00a0' && !spelling.IsShown(r) }
