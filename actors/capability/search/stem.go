package search

import "strings"

// stem cuts the common English endings, so that "clicks", "clicked" and "clicking" meet, and "deletion" meets
// "delete". It is crude on purpose: both sides pass through it, and a wrong cut costs a little rank and nothing else.
func stem(w string) string {
	if regular, ok := irregular[w]; ok {
		w = regular
	}
	w = single(w)
	if len(w) < 4 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ied") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ing") && len(w) > 5 && vowel(w[:len(w)-3]):
		return silent(double(w[:len(w)-3]))
	case strings.HasSuffix(w, "ed") && !strings.HasSuffix(w, "eed") && len(w) > 4 && vowel(w[:len(w)-2]):
		return silent(double(w[:len(w)-2]))
	case (strings.HasSuffix(w, "tion") || strings.HasSuffix(w, "sion")) && len(w) > 7:
		return w[:len(w)-3]
	}
	return silent(w)
}

// single turns a plural into the singular.
func single(w string) string {
	switch {
	case len(w) < 4 || !strings.HasSuffix(w, "s") || strings.HasSuffix(w, "ss") || strings.HasSuffix(w, "us") || strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "shes") || strings.HasSuffix(w, "ches") || strings.HasSuffix(w, "xes") ||
		strings.HasSuffix(w, "uses") && len(w) > 5:
		return w[:len(w)-2]
	}
	return w[:len(w)-1]
}

func vowel(w string) bool { return strings.ContainsAny(w, "aeiouy") }

// double undoes the doubling before an ending: tapp(ing) → tap.
func double(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && strings.IndexByte("aeiouls", w[n-1]) < 0 {
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

// irregular are forms that no ending explains, of words that are said of tools.
var irregular = map[string]string{
	"began": "begin", "begun": "begin", "bought": "buy", "built": "build", "children": "child", "chose": "choose", "chosen": "choose",
	"drawn": "draw", "drew": "draw", "forgot": "forget", "forgotten": "forget", "found": "find", "held": "hold", "hidden": "hide",
	"hid": "hide", "indices": "index", "kept": "keep", "known": "know", "lost": "lose", "matrices": "matrix", "men": "man", "people": "person",
	"ran": "run", "said": "say", "seen": "see", "sent": "send", "shown": "show", "sold": "sell", "spoke": "speak", "spoken": "speak",
	"told": "tell", "vertices": "vertex", "women": "woman", "wrote": "write", "written": "write",
}
