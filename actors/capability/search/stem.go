package search

import "strings"

// stem cuts the common English endings, so that "clicks", "clicked" and "clicking" meet, and "deletion" meets
// "delete". It is crude on purpose: both sides pass through it, and a wrong cut costs a little rank and nothing else.
func stem(w string) string {
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
