package search

import (
	"slices"
	"strings"
)

// relative is a stem of the thesaurus. Its number serves to tell an index's own cheaply.
type relative struct {
	term   string
	number int
}

// family is what the thesaurus knows of a stem.
type family struct {
	relative
	kin []relative // what may stand for it
}

var families = func() map[string]*family {
	m := map[string]*family{}
	for line := range strings.Lines(thesaurus) {
		var group []*family
		for word := range strings.FieldsSeq(line) {
			term := stem(strings.ReplaceAll(word, "-", ""))
			if m[term] == nil {
				m[term] = &family{relative: relative{term, len(m)}}
			}
			group = append(group, m[term])
		}
		for _, a := range group {
			for _, b := range group {
				if a != b && !slices.Contains(a.kin, b.relative) {
					a.kin = append(a.kin, b.relative)
				}
			}
		}
	}
	return m
}()

// kin is what may stand for a stem.
func kin(term string) []relative {
	if f := families[term]; f != nil {
		return f.kin
	}
	return nil
}
