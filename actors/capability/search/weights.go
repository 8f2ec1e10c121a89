package search

// weights decide the order. They were found on the tuning half of the questions of testdata/search (docs/search.md).
type weights struct {
	field      [fields]float32 // how much one term there counts
	length     [fields]float32 // how much a long field is held against it, 0 to 1
	saturation float32         // how soon repetition stops to count
	server     float32         // of a term that is in the server's name
	kin        float32         // of what the thesaurus has for a term
	prefix     float32         // of a term that only begins like the query's
	typo       float32         // of a term that is one letter off
	coverage   float32         // how much it costs not to have all words of the query, 0 to 1
	enough     float32         // what a word has to be worth, inverted, to be had in full
	light      float32         // of a word that says little
	compound   float32         // of two words of the query that are written as one
}

var tuned = weights{
	field:      [fields]float32{inName: 4, inHead: 1, inRest: 0.4, inParam: 0.5},
	length:     [fields]float32{inName: 0.5, inHead: 1, inRest: 0.85, inParam: 0.7},
	saturation: 2.6,
	server:     0.3,
	kin:        0.5,
	prefix:     0.6,
	typo:       0.5,
	coverage:   0.95,
	enough:     3,
	light:      0.6,
	compound:   0.65,
}

// Beside its words: what a name is worth that is the query, is mentioned in it, or contains it.
const (
	isName        = 1000
	mentionsName  = 100
	containsQuery = 1
)

// Bounds of a query, which a stranger asks of strangers' texts.
const (
	maxAsked  = 32       // words that count
	maxPrefix = 256      // terms of one index that one word may be the beginning of
	maxGuess  = 64 << 10 // terms and places that one query looks at for what only begins like a word or is one letter off
)

// Of a word of a query, in bytes.
const (
	minPrefix  = 4 // what may stand for what begins with it
	minStarved = 3 // the same, where nobody has the word itself or its kin
	minTypo    = 4 // what may be one letter off
)
