package page

import (
	_ "embed"
	"strings"
)

// Token is a colour with a name: var(--name) in the stylesheet.
type Token struct{ Name, Light, Dark string }

// tokens are the colours of pages and pictures. Those named s1 to s10 tell lines
// apart; the energies have the ones that begin with part-.
var tokens = []Token{
	{"bg", "#ffffff", "#14171d"},
	{"surface", "#f4f5f8", "#1d2129"},
	{"ink", "#1b1f27", "#eceff4"},
	{"muted", "#4d5565", "#b4bcca"},
	{"line", "#d3d8e0", "#363d49"},
	{"edge", "#737c8c", "#8a94a5"},
	{"link", "#0b57a8", "#8fc1ff"},
	{"focus", "#0b57a8", "#ffd166"},
	{"on-link", "#ffffff", "#10141b"},
	{"info", "#0b4f98", "#9fcaff"},
	{"info-bg", "#e7f0fb", "#17283f"},
	{"good", "#17602f", "#8fdca8"},
	{"good-bg", "#e4f4ea", "#15301f"},
	{"warn", "#7a4800", "#ffca7a"},
	{"warn-bg", "#fff1d6", "#3a2a0d"},
	{"bad", "#a3061a", "#ff9aa6"},
	{"bad-bg", "#fdeaec", "#431a20"},
	{"grid", "#dfe3e9", "#303743"},
	{"axis", "#737c8c", "#8a94a5"},
	{"idle", "#eef0f4", "#232833"},
	{"idle-line", "#c3c9d3", "#454e5d"},
	{"gap", "#ffffff", "#14171d"},
	{"s1", "#0069a6", "#5cb8f0"},
	{"s2", "#bf4b00", "#ff9556"},
	{"s3", "#007a58", "#38cda2"},
	{"s4", "#a8447f", "#ec9fce"},
	{"s5", "#8a6a00", "#e8bd2c"},
	{"s6", "#2f7fa8", "#a5d8f6"},
	{"s7", "#6c4fa8", "#bfa5f0"},
	{"s8", "#666c77", "#b8bfca"},
	{"s9", "#8a4f1a", "#d9a873"},
	{"s10", "#c01f3c", "#ff7f92"},
	{"part-run", "#0069a6", "#4ea9de"},
	{"part-idle", "#b87e00", "#e6b23a"},
	{"part-host", "#6c4fa8", "#a58be0"},
	{"part-on", "#c01f3c", "#ff7f92"},
	{"part-sleep", "#666c77", "#a4acb9"},
}

//go:embed css/page.css
var pageCSS string

//go:embed css/picture.css
var pictureCSS string

var stylesheet = rootCSS() + pageCSS + pictureCSS

// Stylesheet returns the stylesheet of all pages, and of pictures that are inline. It
// refers to nothing outside of itself.
func Stylesheet() string { return stylesheet }

// rootCSS declares the tokens. Paper is light, whatever the screen is.
func rootCSS() string {
	var b strings.Builder
	declare := func(value func(*Token) string) {
		for i := range tokens {
			b.WriteString("--" + tokens[i].Name + ":" + value(&tokens[i]) + ";")
		}
	}
	b.WriteString(":root{color-scheme:light dark;")
	declare(func(t *Token) string { return t.Light })
	b.WriteString("}\n@media screen and (prefers-color-scheme:dark){:root{")
	declare(func(t *Token) string { return t.Dark })
	b.WriteString("}}\n")
	return b.String()
}

// pictureStyle is the same with colours in place of variables.
var pictureStyle = literalPictureCSS(func(t *Token) string { return t.Light }) +
	"@media screen and (prefers-color-scheme:dark){\n" + literalPictureCSS(func(t *Token) string {
	return t.Dark
}) + "}\n"

// PictureStyle returns the stylesheet of a picture in a file of its own. It has no
// variables, which not every program that shows pictures understands.
func PictureStyle() string { return pictureStyle }

// literalPictureCSS returns the style of pictures with one set of colours.
func literalPictureCSS(value func(*Token) string) string {
	pairs := make([]string, 0, 2*len(tokens))
	for i := range tokens {
		pairs = append(pairs, "var(--"+tokens[i].Name+")", value(&tokens[i]))
	}
	return strings.NewReplacer(pairs...).Replace(pictureCSS)
}
