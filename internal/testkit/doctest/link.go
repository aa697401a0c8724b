package doctest

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// Link is a link or a picture of a page, to a file of the project.
type Link struct {
	Line    int
	Text    string
	File    string // the file's path in the project
	Heading string // behind #; "" for none
	Image   bool
}

var (
	link       = regexp.MustCompile(`(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)(?:\s+"[^"]*")?\)`)
	inlineCode = regexp.MustCompile("``[^`]+``|`[^`]*`")
	remote     = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	namedSpot  = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
)

// outside calls a function for each line that isn't in a fenced block.
func (p *Page) outside(do func(number int, line string)) {
	inFence := false
	for i, line := range p.Lines {
		if fence.MatchString(line) {
			inFence = !inFence
			continue
		}
		if !inFence {
			do(i+1, line)
		}
	}
}

// Links returns the page's links to files and headings of the project, in order.
func (p *Page) Links() []Link {
	var found []Link
	p.outside(func(number int, line string) {
		for _, part := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
			target := part[3]
			if remote.MatchString(target) {
				continue
			}
			file, heading, _ := strings.Cut(target, "#")
			switch {
			case file == "":
				file = p.Name
			case strings.HasPrefix(file, "/"):
				file = strings.TrimPrefix(file, "/")
			default:
				file = path.Join(path.Dir(p.Name), file)
			}
			found = append(found, Link{
				Line: number, Text: part[2], File: file, Heading: heading, Image: part[1] != "",
			})
		}
	})
	return found
}

// Anchors returns the names by which links can lead to the page's headings, as
// GitHub makes them, and its named spots.
func (p *Page) Anchors() []string {
	var found []string
	seen := make(map[string]int)
	p.outside(func(_ int, line string) {
		for _, part := range namedSpot.FindAllStringSubmatch(line, -1) {
			found = append(found, part[1])
		}
		part := heading.FindStringSubmatch(line)
		if part == nil {
			return
		}
		name := anchor(part[1])
		n := seen[name]
		seen[name]++
		if n > 0 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		found = append(found, name)
	})
	return found
}

// anchor returns the name of a heading: lower case, blanks as hyphens, no punctuation.
func anchor(text string) string {
	text = link.ReplaceAllString(text, "$2")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
