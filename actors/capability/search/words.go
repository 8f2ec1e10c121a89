package search

import (
	"strings"
	"unicode"
)

// words splits a text into lower-case terms: at everything that is neither a
// letter nor a digit, at a change from lower to upper case, before the last
// letter of a run of capitals (HTTPServer → http server), and between letters
// and digits. Stop words are left out and endings are cut.
func words(s string) []string {
	var out []string
	runes := []rune(s)
	start := -1
	flush := func(end int) {
		if start < 0 {
			return
		}
		w := strings.ToLower(string(runes[start:end]))
		start = -1
		if !stop[w] {
			out = append(out, stem(w))
		}
	}
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush(i)
			continue
		}
		if start >= 0 && boundary(runes, i) {
			flush(i)
		}
		if start < 0 {
			start = i
		}
	}
	flush(len(runes))
	return out
}

// boundary reports that a new word begins at i, which is inside a run of letters
// and digits.
func boundary(runes []rune, i int) bool {
	prev, r := runes[i-1], runes[i]
	switch {
	case unicode.IsDigit(prev) != unicode.IsDigit(r):
		return true
	case unicode.IsLower(prev) && unicode.IsUpper(r):
		return true
	case unicode.IsUpper(prev) && unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
		return true
	}
	return false
}

// stop are words that say nothing about a tool.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a an and are as at be by can do does for from has have how i if in into is it
		its me my of on or our that the their then this to us was we what when which will with you your`) {
		m[w] = true
	}
	return m
}()

// stem cuts the common English endings, so that "clicks", "clicked" and
// "clicking" meet. It is crude on purpose: both sides pass through it, and a
// wrong cut costs a little rank and nothing else.
func stem(w string) string {
	if len(w) < 4 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ing") && len(w) > 5:
		return silent(double(w[:len(w)-3]))
	case strings.HasSuffix(w, "ed") && len(w) > 4:
		return silent(double(w[:len(w)-2]))
	case strings.HasSuffix(w, "es") && len(w) > 4:
		return silent(w[:len(w)-2])
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us"):
		return silent(w[:len(w)-1])
	}
	return silent(w)
}

// double undoes the doubling before an ending: tapp(ing) → tap.
func double(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("aeiouls", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// silent drops a final e, which endings swallow: typ(ing) and type.
func silent(w string) string {
	if len(w) > 3 && w[len(w)-1] == 'e' {
		return w[:len(w)-1]
	}
	return w
}
