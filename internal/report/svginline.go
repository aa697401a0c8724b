package report

import (
	"math"
	"strconv"
	"strings"
)

// Mark is how a [Series] is drawn.
type Mark int

// The marks.
const (
	Line Mark = iota
	Dashed
	Dots
	Hollow // dots without a filling
)

const dotRadius = 4

// color returns a series' place in the palette, from 0 on.
func (s *Series) color(place int) int {
	if s.Color > 0 {
		return s.Color - 1
	}
	return place
}

// lineStyle returns how the line of a series, or the edge of its dots, is drawn.
func (s *Series) lineStyle(place int) string {
	look := lineStyle(s.color(place))
	if s.Mark == Dashed {
		look = strings.Replace(look, `class="ln`, `class="ln dash`, 1)
	}
	return look
}

// fill returns the class that fills something in a series' colour.
func (s *Series) fill(place int) string { return "a" + strconv.Itoa(1+s.color(place)%lineColors) }

// key draws what a series looks like in the legend.
func (p *chartPicture) key(s *Series, place int, key legendKey) {
	if s.Mark == Dots || s.Mark == Hollow {
		p.dot(s, place, key.x+keyLength/2, key.y-4, s.Name)
		return
	}
	p.Printf(`<path %s d="M%s %sh%d"/>`, s.lineStyle(place), Px(key.x), Px(key.y-4), keyLength)
}

// series draws a series' line, or its dots.
func (p *chartPicture) series(s *Series, place int, f *Frame) {
	if s.Mark == Line || s.Mark == Dashed {
		p.Printf(`<path %s d="%s"><title>%s</title></path>`+"\n", s.lineStyle(place), LinePath(s, f.Px, f.Py),
			Escape(s.Name))
		return
	}
	for i, v := range s.Y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		note := s.Name
		if i < len(s.Notes) {
			note = s.Notes[i]
		}
		p.dot(s, place, f.Px(s.X[i]), f.Py(v), note)
	}
}

func (p *chartPicture) dot(s *Series, place int, x, y float64, note string) {
	look := `class="dot ` + s.fill(place) + `"`
	if s.Mark == Hollow {
		look = s.lineStyle(place)
	}
	p.Printf(`<circle %s cx="%s" cy="%s" r="%d"><title>%s</title></circle>`+"\n", look, Px(x), Px(y),
		dotRadius, Escape(note))
}

// band fills what is between a series' edges, in pieces where one isn't known.
func (p *chartPicture) band(s *Series, place int, f *Frame) {
	known := func(i int) bool {
		return i < min(len(s.Low), len(s.High)) && !math.IsNaN(s.Low[i]+s.High[i]) &&
			!math.IsInf(s.Low[i]+s.High[i], 0)
	}
	for from := 0; from < len(s.Low); from++ {
		to := from
		for known(to) {
			to++
		}
		if to == from {
			continue
		}
		var path strings.Builder
		command := "M"
		for i := from; i < to; i++ {
			path.WriteString(command + Px(f.Px(s.X[i])) + " " + Px(f.Py(s.High[i])))
			command = "L"
		}
		for i := to - 1; i >= from; i-- {
			path.WriteString("L" + Px(f.Px(s.X[i])) + " " + Px(f.Py(s.Low[i])))
		}
		p.Printf(`<path class="%s" fill-opacity=".16" d="%sZ"/>`+"\n", s.fill(place), path.String())
		from = to
	}
}
