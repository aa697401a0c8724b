package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestEveryKeyIsFoundWhereItStands(t *testing.T) {
	const text = `# a comment with [a] = 1
title = "x # no comment" # one
"quoted \"key\"" = 'C:\'
a.b . 'c d'= [ 1, # one
  [2, { x = 3, y.z = 4 }],
]
[[nodes]] # first
s = """
[fake]
k = "1" ""\""""
[nodes.sub]
t = 1979-05-27 07:32:00
[[nodes]]
[[nodes.disks]]
size=1
[[nodes.disks]]
size = '''
'two' quotes'''''
u = { }
`
	want := map[string]string{ // line:column of key and value
		"title":             "2:1 2:9",
		`"quoted \"key\""`:  "3:1 3:20",
		"a":                 "4:1 4:14",
		"a.b":               "4:1 4:14",
		`a.b."c d"`:         "4:1 4:14",
		`a.b."c d"[0]`:      "4:16 4:16",
		`a.b."c d"[1]`:      "5:3 5:3",
		`a.b."c d"[1][0]`:   "5:4 5:4",
		`a.b."c d"[1][1]`:   "5:7 5:7",
		`a.b."c d"[1][1].x`: "5:9 5:13",
		`a.b."c d"[1][1].y`: "5:16 5:22", `a.b."c d"[1][1].y.z`: "5:16 5:22",
		"nodes": "7:1 7:1", "nodes[0]": "7:1 7:1",
		"nodes[0].s":     "8:1 8:5",
		"nodes[0].sub":   "11:1 11:1",
		"nodes[0].sub.t": "12:1 12:5",
		"nodes[1]":       "13:1 13:1",
		"nodes[1].disks": "14:1 14:1", "nodes[1].disks[0]": "14:1 14:1",
		"nodes[1].disks[0].size": "15:1 15:6",
		"nodes[1].disks[1]":      "16:1 16:1",
		"nodes[1].disks[1].size": "17:1 17:8",
		"nodes[1].disks[1].u":    "19:1 19:5",
	}
	d, err := parse(strings.NewReader(text), "t.toml")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for path, p := range d.offsets {
		k, v := d.positionAt(p.key), d.positionAt(p.value)
		got[path] = fmt.Sprintf("%d:%d %d:%d", k.Line, k.Column, v.Line, v.Column)
	}
	if !maps.Equal(got, want) {
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if got[path] != want[path] {
				t.Errorf("%s at %q, want %q", path, got[path], want[path])
			}
		}
		for path := range got {
			if _, ok := want[path]; !ok {
				t.Errorf("%s found at %s, isn't in the text", path, got[path])
			}
		}
	}
}

// missingPlaces returns the paths of a parsed value that have no place.
func missingPlaces(places map[string]keyOffsets, path string, v any) []string {
	var missing []string
	if _, ok := places[path]; !ok && path != "" {
		missing = append(missing, path)
	}
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			missing = append(missing, missingPlaces(places, joinKey(path, key), value)...)
		}
	case []map[string]any:
		for i, value := range x {
			missing = append(missing, missingPlaces(places, fmt.Sprintf("%s[%d]", path, i), value)...)
		}
	case []any:
		for i, value := range x {
			missing = append(missing, missingPlaces(places, fmt.Sprintf("%s[%d]", path, i), value)...)
		}
	}
	return missing
}

func FuzzEveryValueOfAValidTextHasAPlace(f *testing.F) {
	for _, seed := range []string{
		DefaultText(), siteConfig, builtinProfiles, modelsText,
		"a = [[1, '''x''', {b.c = \"\\\"\", d = [ ]}], []]\n",
		"'' = 1\n\"\\u00e9\".x = 2\r\n[[a.b]]\n[a.b.c]\n[[a.b]]\nd = {\n e = 1, # x\n}",
		"a = \"\"\"\\\"\"\"\"\"\"\nb = ''''''\nc = 1_000.5e-3\nd = 07:32:00\nt=true#",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if invalidByte(text) >= 0 || strings.HasPrefix(text, byteOrderMark) {
			return
		}
		places, tooDeep := scan(text)
		if tooDeep {
			return
		}
		var root map[string]any
		if _, err := toml.Decode(text, &root); err != nil {
			return
		}
		if missing := missingPlaces(places, "", root); len(missing) > 0 {
			t.Errorf("no place for %q", missing)
		}
	})
}
