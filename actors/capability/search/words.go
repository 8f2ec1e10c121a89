package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// eachWord hands out the words of a text in lower case, in their order, until yield says no. A text is split at everything
// that is neither a letter, a mark nor a digit, at a change from lower to upper case, before the last letter of a
// run of capitals (HTTPServer → http server), and between letters and digits. A script that is written without spaces
// gives each two neighbouring characters. hyphen says that nothing but one hyphen parts the word from the one before.
func eachWord(s string, yield func(word string, hyphen bool) bool) {
	start := -1     // of the word that is being read
	var prev rune   // the one before i
	var dashed bool // the word began right after a hyphen that followed a word
	for i := 0; i <= len(s); {
		r, size := utf8.RuneError, 1
		if i < len(s) {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		inside := i < len(s) && partOfWord(r)
		if start >= 0 && (!inside || boundary(prev, r, s[i+size:])) {
			if !yield(strings.ToLower(s[start:i]), dashed) {
				return
			}
			dashed = !inside && r == '-'
			start = -1
		} else if start < 0 && !inside {
			dashed = false
		}
		switch {
		case inside && dense(r):
			// Neighbours in pairs; a character that stands alone is a word of its own.
			if next, n := utf8.DecodeRuneInString(s[i+size:]); dense(next) {
				if !yield(s[i:i+size+n], false) {
					return
				}
			} else if !dense(prev) && !yield(s[i:i+size], false) {
				return
			}
			dashed = false
		case inside && start < 0:
			start = i
		}
		prev = r
		i += size
	}
}

func partOfWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// boundary reports that a new word begins with r, which follows prev inside of a run of letters and digits; after is what follows r.
func boundary(prev, r rune, after string) bool {
	switch {
	case dense(r):
		return true
	case unicode.IsDigit(prev) != unicode.IsDigit(r) && !unicode.IsMark(r):
		return true
	case !unicode.IsUpper(r):
		return false
	case unicode.IsLower(prev):
		return true
	}
	next, _ := utf8.DecodeRuneInString(after)
	return unicode.IsUpper(prev) && unicode.IsLower(next)
}

// dense reports a script that puts no spaces between words.
func dense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// joined is a text without anything but its letters and digits, in lower case: read_file, readFile and "Read file" are one.
func joined(s string) string {
	var b strings.Builder
	for _, r := range s {
		if partOfWord(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

func setOf(text string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		m[w] = true
	}
	return m
}

// stop are words that say nothing about a tool.
var stop = setOf(`a an and any anything are as at be been being but by can could did do does for from had has have here
	how i if in into is it its just let like may me might must my need of off on or our out please shall she should so some
	something than that the their them then there these they this those to too up us very want was we were what when which who
	while will with within would you your am everything one ones per via whose whom whether using used use yes no not
	exist exists there here already about`)

// light are words that say little: they count, but less than others.
var light = setOf(`take taken took give given put make made get got go goes set new now many much more most some several
	two three first second next last old other another single current particular specific certain each every all both time times
	tool tools capability capabilities lately recently long short big small good way kind part`)

// termsOf is the words of a text, stemmed, without those that say nothing.
func termsOf(s string) []string {
	var list []string
	eachWord(clip(s), func(w string, _ bool) bool {
		if !stop[w] {
			list = append(list, stem(w))
		}
		return true
	})
	return list
}
