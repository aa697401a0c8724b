package predict

import "math"

// The respects in which jobs may be alike. A job's history is looked up by a key for
// each: first those below, from the most alike to any job at all, and after them three
// for each label.
const (
	byAll        = iota // owner, labels, sizes, requested time
	bySize              // owner, labels, sizes
	byLabels            // owner, labels
	byOwnerShape        // owner, sizes, requested time
	byOwnerSize         // owner, sizes
	byOwnerTime         // owner, requested time
	byOwner             // owner
	byShape             // sizes, requested time
	bySizes             // sizes
	byAnyJob            // any job
	keyCount            // how many those are
	keysPerLabel = 3    // a label alone, with sizes, with owner
)

// hash is FNV-1a over the parts of a key.
type hash uint64

const (
	emptyHash hash = 14695981039346656037
	hashPrime hash = 1099511628211
)

// text hashes a text and its end.
func (h hash) text(s string) hash {
	for i := range len(s) {
		h = (h ^ hash(s[i])) * hashPrime
	}
	return (h ^ 0x1f) * hashPrime // a separator, so that "a", "bc" isn't "ab", "c"
}

// word hashes the bytes of a number, the lowest first.
func (h hash) word(w uint64) hash {
	for range 8 {
		h = (h ^ hash(w&0xff)) * hashPrime
		w >>= 8
	}
	return h
}

// number hashes a float; all NaN are alike.
func (h hash) number(x float64) hash {
	if math.IsNaN(x) {
		return h.word(1)
	}
	return h.word(math.Float64bits(x))
}

func appendKeys(out []hash, j *Features) []hash {
	owner := emptyHash.text(j.Owner)
	labels, sizes := owner, emptyHash
	for _, l := range j.Labels {
		labels = labels.text(l)
	}
	for _, s := range j.Sizes {
		sizes = sizes.number(s)
	}
	full, owned := labels.word(uint64(sizes)), owner.word(uint64(sizes))
	at := len(out)
	out = append(out, full.number(j.Requested), full, labels,
		owned.number(j.Requested), owned, owner.number(j.Requested), owner,
		sizes.number(j.Requested), sizes, emptyHash)
	for i, l := range j.Labels {
		one := emptyHash.text(l).word(uint64(i))
		out = append(out, one, one.word(uint64(sizes)), one.word(uint64(owner)))
	}
	for i := range out[at:] {
		out[at+i] = out[at+i].word(uint64(i)) // the respect: no two share a track
	}
	return out
}
