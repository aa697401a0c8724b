package spelling

import "testing"

func TestWhatNobodySeesIsNotShown(t *testing.T) {
	for _, r := range "az AZ09~é日本😀е́�" {
		if !IsShown(r) {
			t.Errorf("%U isn't shown", r)
		}
	}
	for name, all := range map[string]string{
		"control":   "\x00\x1b\n\t\x7f\u0085\u009b",
		"direction": "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
		"no width": "\u00ad\u034f\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u2060\u2063\u206f\u3164" +
			"\ufe00\ufe0f\ufeff\uffa0\U000e0020\U000e0041\U000e0100",
		"space":   "\u00a0\u2003\u2028\u2029\u3000",
		"private": "\ue000",
	} {
		for _, r := range all {
			if IsShown(r) {
				t.Errorf("%s: %U is shown", name, r)
			}
		}
	}
}
