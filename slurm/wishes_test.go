package slurm_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/epplan/epplan/slurm"
	"pgregory.net/rapid"
)

func TestWishesInAComment(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	now := time.Date(2026, 11, 21, 17, 0, 0, 0, zone)
	for comment, want := range map[string]slurm.Wishes{
		"":                                  {},
		"my own text; no wish":              {},
		"epplan:off":                        {Off: true},
		"text;epplan:off;more":              {Off: true},
		"EPPLAN:OFF":                        {Off: true},
		"Epplan:Fixed=1200":                 {CoreMHz: 1200},
		"epplan:fixed=1200,5001":            {CoreMHz: 1200, MemoryMHz: 5001},
		"a epplan:fixed=1200 b":             {CoreMHz: 1200},
		"epplan:deadline=+2h":               {Deadline: now.Add(2 * time.Hour)},
		"epplan:deadline=+3d":               {Deadline: now.Add(72 * time.Hour)},
		"epplan:deadline=2026-11-22T10:00Z": {Deadline: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)},
		"epplan:deadline=18:00":             {Deadline: time.Date(2026, 11, 21, 18, 0, 0, 0, zone)},
		"epplan:deadline=16:00":             {Deadline: time.Date(2026, 11, 22, 16, 0, 0, 0, zone)},
		"epplan:deadline=2026-11-22T10:00:00Z;epplan:fixed=900,5001": {
			Deadline: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), CoreMHz: 900, MemoryMHz: 5001,
		},
		"epplan:slowdown=1.05":                    {Slowdown: 1.05},
		"epplan:slowdown=1.5 epplan:deadline=+2h": {Slowdown: 1.5, Deadline: now.Add(2 * time.Hour)},
		"epplan:slack=4h":                         {Slack: 4 * time.Hour, HasSlack: true},
		"epplan:slack = 90m; slowdown=1.5":        {Slack: 90 * time.Minute, HasSlack: true, Slowdown: 1.5},
		"epplan:slack=+1d":                        {Slack: 24 * time.Hour, HasSlack: true},
		"epplan:slack=0":                          {HasSlack: true},
		"epplan:off,slack=4h":                     {Off: true, Warnings: []string{"the other doesn't count"}},
		"epplan:off;epplan:slowdown=2":            {Off: true, Warnings: []string{"the other doesn't count"}},
		"epplan:off epplan:fixed=1,1":             {Off: true, Warnings: []string{"the other doesn't count"}},
		"prefix-epplan:off":                       {},
	} {
		got := slurm.ParseWishes(comment, now)
		if got.Off != want.Off || got.CoreMHz != want.CoreMHz || got.MemoryMHz != want.MemoryMHz ||
			got.Slowdown != want.Slowdown || got.Slack != want.Slack || got.HasSlack != want.HasSlack ||
			!got.Deadline.Equal(want.Deadline) || len(got.Warnings) != len(want.Warnings) {
			t.Errorf("%q: %+v", comment, got)
		}
	}
	for _, comment := range []string{
		"epplan:slowdown=0.9", "epplan:slowdown=", "epplan:slowdown=nan", "epplan:slowdown=11",
		"epplan:slowdown=5%", "epplan:slack=", "epplan:slack=-1h", "epplan:slack=8d", "epplan:slack=18:00",
		"epplan:slack=2026-11-22T10:00:00Z", "epplan:slack=nanh",
		"epplan:fixed=0,0", "epplan:fixed=1200,", "epplan:fixed=-1,5", "epplan:fixed=99999999999999999999",
		"epplan:fixed=1200,5001,7", "epplan:fixed", "epplan:deadline=", "epplan:deadline=-2h",
		"epplan:deadline=+0s", "epplan:deadline=25:00", "epplan:deadline=+9999999h", "epplan:deadline=++2h",
		"epplan:deadline=2020-01-01T00:00:00Z", "epplan:$(reboot)", "epplan:\x00\xff",
		"epplan:deadline=+NaNh",
	} {
		got := slurm.ParseWishes(comment, now)
		if got.Off || got.HasFixedClocks() || !got.Deadline.IsZero() || got.HasSlack || len(got.Warnings) != 1 {
			t.Errorf("%q: %+v", comment, got)
		}
	}
	if got := slurm.ParseWishes("epplan:fixed=1200,5001 epplan:fixed=300,300", now); got.CoreMHz != 1200 ||
		len(got.Warnings) != 1 {
		t.Errorf("%+v", got)
	}
	if got := slurm.ParseWishes(strings.Repeat("epplan:x ", 100_000), now); len(got.Warnings) > 20 {
		t.Error("warnings are not bounded")
	}
}

func TestOptingOutWorksHoweverItIsWritten(t *testing.T) {
	now := time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)
	for _, comment := range []string{
		"epplan:off", "EPPLAN:OFF", "epplan: off", "Epplan : Off", "epplan=off", "epplan = off",
		"epplan:OFF;", "epplan:off.",
		"epplan:off,deadline=+1h", "epplan:off, deadline=+1h", "epplan:deadline=+1h,off",
		"epplan:deadline=+1h; off",
		"epplan:deadline=+1h off", "epplan:fixed=1200,5001,off", "epplan:fixed = 1200 , off", "epplan:nocode,off",
		"my note, epplan:off", "(epplan:off)", "\"epplan:off\"", "see a ticket;epplan:off;more",
		"epplan::off", "epplan:=off",
		"epplan off", "epplan-off", "epplan_off", "epplan\t:\toff", "epplan:\u00a0off", "epplan:of",
		"epplan:offf", "epplan:0ff",
		"epplan:off=1", "epplan:off=true", "epplan:no", "epplan:none", "epplan:disable", "epplan:disabled",
		"epplan:false",
		"epplan:opt-out", "epplan:optout", "epplan:hands-off", "x=1,epplan:off", "--comment=epplan:off",
		"epplan:fixed=,off", "epplan:x,y,off",
	} {
		if w := slurm.ParseWishes(comment, now); !w.Off || w.HasFixedClocks() || !w.Deadline.IsZero() ||
			slurm.WishText(comment) == "" {
			t.Errorf("%q: %+v", comment, w)
		}
	}
	for _, comment := range []string{ // words about it
		"epplan", "thanks to epplan this took less", "ask epplan about it", "epplan's clocks, see off-line",
		"myepplan:off",
		"/epplan:off", "epplan offers clocks", "epplan is off", "off", "", "epplan.off",
	} {
		if w := slurm.ParseWishes(comment, now); w.Off || len(w.Warnings) > 0 {
			t.Errorf("%q: %+v", comment, w)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		either := func(word string) string {
			var b strings.Builder
			for _, r := range word {
				if rapid.Bool().Draw(t, "capital") {
					r = unicode.ToUpper(r)
				}
				b.WriteRune(r)
			}
			return b.String()
		}
		blank := rapid.SampledFrom([]string{"", " ", "\t", "  ", "\u00a0"})
		part := func() string {
			return blank.Draw(t, "blank") + rapid.SampledFrom([]string{",", ";", " "}).Draw(t, "part")
		}
		wish := rapid.SampledFrom([]string{
			"nocode", "fixed=1200", "fixed=1200,5001", "deadline=+1h", "slowdown=1.2", "slack=3h",
		})
		text := rapid.SampledFrom([]string{"", "a note ", "x;", "(", "a=b,", "ü "}).Draw(t, "before") +
			either("epplan") +
			blank.Draw(t, "blank") + rapid.SampledFrom([]string{":", "=", "::"}).Draw(t, "sign") +
			blank.Draw(t, "blank")
		for range rapid.IntRange(0, 2).Draw(t, "wishes before") {
			text += either(wish.Draw(t, "wish")) + part() + blank.Draw(t, "blank") //nolint:perfsprint // few
		}
		text += either("off")
		for range rapid.IntRange(0, 2).Draw(t, "wishes behind") {
			text += part() + blank.Draw(t, "blank") + either(wish.Draw(t, "wish")) //nolint:perfsprint // few
		}
		text += rapid.SampledFrom([]string{"", ";", " ", ".", ")", ", thanks"}).Draw(t, "behind")
		if w := slurm.ParseWishes(text, now); !w.Off || w.HasFixedClocks() || !w.Deadline.IsZero() ||
			w.Slowdown != 0 {
			t.Fatalf("%q: %+v", text, w)
		}
	})
}
