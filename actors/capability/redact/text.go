package redact

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// shortest is the length from which on a known secret is looked for: a shorter one is found in every second word.
const shortest = 4

// Text masks what looks like a credential in the text of an error:
//
//   - the value behind a name such as password, token or api-key, quoted or not, that = or : follows; behind authorization, bearer and
//     cookie all of the field;
//   - a bearer or basic credential without such a name;
//   - keys and tokens known by their form: of AWS, GitHub, GitLab, Slack, Google and model providers, JSON web tokens, private keys;
//   - the user part of a URL, and secrets in its query.
//
// Applied twice it changes no more than once.
func Text(s string) string {
	s = privateKeys(s)
	if strings.Contains(s, "://") {
		s = userinfo.ReplaceAllString(s, "${1}"+Mask+"@")
	}
	if strings.ContainsAny(s, "?&") && strings.Contains(s, "=") {
		s = query.ReplaceAllString(s, "${1}"+Mask)
	}
	s = fields(s)
	return forms(s)
}

// TextWith is Text after the given secrets were masked wherever they stand, also as they are written in a URL or in JSON. Those of fewer than four
// bytes are left to Text.
func TextWith(secrets []string, s string) string {
	var known []string
	for _, secret := range secrets {
		if len(secret) < shortest {
			continue
		}
		quoted := string(jsonrpc.AppendString(nil, secret))
		known = append(known, secret, url.QueryEscape(secret), url.PathEscape(secret), quoted[1:len(quoted)-1])
	}
	slices.SortFunc(known, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, secret := range slices.Compact(known) { // the longest first, for one may be a piece of another
		s = strings.ReplaceAll(s, secret, Mask)
	}
	return Text(s)
}

// userinfo is what stands before the last @ of a URL's authority.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]{0,31}://)[^\s/?#"'<>]*@`)

// query is a secret in a URL's query or fragment whose name would say nothing elsewhere.
var query = regexp.MustCompile(`(?i)([?&#](?:[\w.%-]{0,64}[-_.])?(?:key|sig|signature|code|auth|credentials?|jwt|sid|session|sessionid|pass)=)[^&#\s"'<>\\]+`)

// privateKeys masks whole PEM blocks.
func privateKeys(s string) string {
	const begin, end = "-----BEGIN ", "-----END "
	for from := 0; ; {
		at := strings.Index(s[from:], begin)
		if at < 0 {
			return s
		}
		at += from
		label, _, ok := strings.Cut(s[at+len(begin):min(len(s), at+len(begin)+64)], "-----")
		if !ok || !strings.HasSuffix(label, "PRIVATE KEY") {
			from = at + len(begin)
			continue
		}
		rest := at + len(begin) + len(label) + len("-----")
		stop := len(s)
		if i := strings.Index(s[rest:], end); i >= 0 {
			stop = rest + i
		}
		s = s[:rest] + Mask + s[stop:]
		from = rest + len(Mask)
	}
}

// bare is a credential without a name before it, by the scheme that it stands behind.
var bare = regexp.MustCompile(`(?i)\b(bearer|basic|digest)([ \t]+)([A-Za-z0-9._~+/=-]{8,})`)

// known are credentials by their form.
var known = regexp.MustCompile(`\b(?:A(?:KIA|SIA)[A-Z0-9]{16}\b|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[A-Za-z0-9-]{10,}|` +
	`sk-[\w-]{20,}|AIza[\w-]{35}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)`)

// hints: a text without any of them holds none of known.
var hints = []string{"AKIA", "ASIA", "gh", "glpat-", "xox", "sk-", "AIza", "eyJ"}

func forms(s string) string {
	if containsFold(s, "bearer ") || containsFold(s, "basic ") || containsFold(s, "digest ") || strings.Contains(s, "\t") {
		s = bare.ReplaceAllStringFunc(s, func(m string) string {
			parts := bare.FindStringSubmatch(m)
			if !strings.ContainsAny(parts[3], "0123456789=") && len(parts[3]) < 24 {
				return m // a word: "basic authentication"
			}
			return parts[1] + parts[2] + Mask
		})
	}
	if slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(s, h) }) {
		s = known.ReplaceAllString(s, Mask)
	}
	return s
}

// containsFold is strings.Contains without regard to the case of ASCII letters in s; part is in lower case.
func containsFold(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if equalFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// equalFold compares two texts of one length, of which b is in lower case, as ASCII.
func equalFold(a, b string) bool {
	for i := range len(b) {
		if lower(a[i]) != b[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
