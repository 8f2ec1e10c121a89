package mcpjson

import (
	"fmt"
	"strings"
)

// variable is one value that came from the environment.
type variable struct{ name, value string }

// expand replaces ${X}, ${env:X} and ${X:-default}; $$ is one $. A $ before anything else stands for itself. The default counts where the
// variable is not set or is empty. On a fault unset names the variable that is missing, if that is what is wrong, and bad says what, in words
// without a byte of s or of a value.
func expand(s string, env func(string) (string, bool)) (out string, used []variable, unset, bad string) {
	at := strings.IndexByte(s, '$')
	if at < 0 {
		return s, nil, "", ""
	}
	var b strings.Builder
	for at >= 0 {
		b.WriteString(s[:at])
		s = s[at+1:]
		switch {
		case strings.HasPrefix(s, "$"):
			b.WriteByte('$')
			s = s[1:]
		case strings.HasPrefix(s, "{"):
			inner, rest, closed := strings.Cut(s[1:], "}")
			if !closed {
				return "", nil, "", "has a ${ without its }; write $${ where no variable is meant"
			}
			value, v, unset, bad := refer(inner, env)
			if bad != "" {
				return "", nil, unset, bad
			}
			if v.name != "" {
				used = append(used, v)
			}
			b.WriteString(value)
			s = rest
		default:
			b.WriteByte('$')
		}
		if b.Len() > MaxString {
			return "", nil, "", fmt.Sprintf("has more than %d bytes once its variables are replaced", MaxString)
		}
		at = strings.IndexByte(s, '$')
	}
	b.WriteString(s)
	if b.Len() > MaxString {
		return "", nil, "", fmt.Sprintf("has more than %d bytes once its variables are replaced", MaxString)
	}
	return b.String(), used, "", ""
}

// refer finds the value of what stands between the braces.
func refer(inner string, env func(string) (string, bool)) (value string, v variable, unset, bad string) {
	name, otherwise, hasDefault := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !isVariable(name) {
		return "", v, "", "has a ${…} that names no variable; write ${NAME}, ${env:NAME} or ${NAME:-default}, and $${ where none is meant"
	}
	if strings.Contains(otherwise, "${") {
		return "", v, "", "has a variable in the default of ${" + name + ":-…}, which is not replaced; write a plain text there"
	}
	value, set := env(name)
	switch {
	case hasDefault && value == "":
		return otherwise, v, "", ""
	case !set:
		return "", v, name, "needs the variable " + name + ", which is not set; set it where the pod is started, or write ${" + name + ":-default}"
	}
	return value, variable{name, value}, "", ""
}

// isVariable says whether name can be a variable's name. One that is longer than any that people use may be a secret in the wrong place.
func isVariable(name string) bool {
	return name != "" && len(name) <= 128 && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_'
	})
}
