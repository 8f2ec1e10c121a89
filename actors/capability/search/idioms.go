package search

import (
	"slices"
	"strings"
)

// idioms are words that mean something else together; they are replaced before anything else happens.
var idioms = phrases(`
look up=search
look for=search
looking for=search
get rid of=delete
throw away=delete
set up=create
make a copy=copy
find out=get
fill in=fill
fill out=fill
write down=write note
turn on=enable toggle
turn off=disable toggle
switch on=enable toggle
switch off=disable toggle
log in=login
logged in=login
sign in=login
sign up=signup
log out=logout
drop down=dropdown
pop up=popup
e mail=email
how far=distance
how long=duration time
how many=count
how high=elevation
how big=size
go back=back navigate
step back=back
close to=near
pr=pull request
prs=pull request
mr=merge request
`)

// phrase is an idiom: its words and what is read in their place.
type phrase struct{ words, means []string }

// phrases reads idioms, by their first word, the longer ones first.
func phrases(text string) map[string][]phrase {
	m := map[string][]phrase{}
	for line := range strings.Lines(text) {
		idiom, means, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		p := phrase{strings.Fields(idiom), strings.Fields(means)}
		list := m[p.words[0]]
		at := 0
		for at < len(list) && len(list[at].words) >= len(p.words) {
			at++
		}
		m[p.words[0]] = append(list[:at:at], append([]phrase{p}, list[at:]...)...)
	}
	return m
}

// hints are question words and what their answers are mostly about.
var hints = map[string]string{
	"which": "list", "what": "list", "all": "list", "who": "user", "whom": "user", "whose": "user", "everybody": "user", "everyone": "user",
	"where": "location", "when": "time",
}

// idiom is what is read in place of the first n words, 0 where they are none.
func idiom(words []string) (means []string, n int) {
	for _, p := range idioms[words[0]] {
		if len(words) >= len(p.words) && slices.Equal(words[:len(p.words)], p.words) {
			return p.means, len(p.words)
		}
	}
	return nil, 0
}
