package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// check judges one string: a string key's value, or each item of a list.
type check struct {
	allowed string // completes "want …"
	ok      func(string) bool
}

var checks = map[string]check{
	"address":             {`host:port, such as "127.0.0.1:8080" (port 0 picks a free one)`, isAddress},
	"address-or-empty":    {`host:port, or "" to turn it off`, func(s string) bool { return s == "" || isAddress(s) }},
	"loopback":            {`a loopback ip:port, such as "127.0.0.1:8848": the facade never listens beyond this machine`, isLoopbackAddress},
	"origin":              {`an exact origin, such as "https://app.example" or "chrome-extension://abcdef"`, isOrigin},
	"nonempty":            {"not empty", func(s string) bool { return strings.TrimSpace(s) != "" }},
	"argument":            {"without a NUL byte", func(s string) bool { return !strings.ContainsRune(s, 0) }},
	"envname":             {"the name of an environment variable", isEnvName},
	"server":              {"1 to 64 of A-Z, a-z, 0-9, _ and -", isServerName},
	"label":               {"1 to 64 printable characters", isLabel},
	"processors-or-empty": {`a number of processors from 0.01 to 4096, such as "1.5", or "" for all`, func(s string) bool { return s == "" || isProcessors(s) }},
	"re2":                 {"a regular expression (RE2) that does not match the empty text", isPattern},
}

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsFunc(host, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == port
}

func isLoopbackAddress(s string) bool {
	at, err := netip.ParseAddrPort(s)
	return err == nil && at.Addr().Zone() == "" && at.Addr().Unmap().IsLoopback()
}

// IsLoopback says whether a listen address stays on this machine: its host is localhost or a loopback address. What cannot
// be read counts as beyond, and so does an empty host, which means every interface.
func IsLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func isOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != "" && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil && !strings.Contains(u.Host, "*") && !strings.HasSuffix(s, "#") && !strings.HasSuffix(s, "?")
}

func isEnvName(s string) bool { return s != "" && !strings.ContainsAny(s, "=\x00") }

func isServerName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func isLabel(s string) bool {
	return strings.TrimSpace(s) != "" && len([]rune(s)) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func isProcessors(s string) bool {
	n, err := strconv.ParseFloat(s, 64)
	return err == nil && n >= 0.01 && n <= 4096 && strings.Trim(s, "0123456789.") == ""
}

// isPattern: one that matches nothing at all would be found before and behind every byte.
func isPattern(s string) bool {
	re, err := regexp.Compile(s)
	return err == nil && !re.MatchString("")
}

// tokenBytes are the bytes that may travel in a WebSocket subprotocol entry (RFC 7230's token).
const tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"

// IsToken says whether a key can be sent as a subprotocol, which is the only way in for a browser.
func IsToken(s string) bool { return s != "" && strings.Trim(s, tokenBytes) == "" }
