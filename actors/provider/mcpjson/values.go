package mcpjson

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The functions here read one value each. bad is empty, or what is wrong with it, to stand behind its name; it never holds the value.

func (n node) str() (s, bad string) {
	switch {
	case n.kind != '"':
		return "", "is " + n.what() + " and has to be a string"
	case len(n.text) > MaxString:
		return "", fmt.Sprintf("has more than %d bytes", MaxString)
	case strings.ContainsRune(n.text, 0):
		return "", "holds a NUL, which cannot be passed on"
	}
	return n.text, ""
}

func (n node) boolean() (v bool, bad string) {
	if n.kind != 't' && n.kind != 'f' {
		return false, "is " + n.what() + " and has to be true or false"
	}
	return n.kind == 't', ""
}

// strings is a list of at most most strings; never nil when bad is empty.
func (n node) strings(most int) (list []string, bad string) {
	if n.kind != '[' {
		return nil, "is " + n.what() + " and has to be a list of strings"
	}
	if len(n.items) > most {
		return nil, fmt.Sprintf("has %d items; %d are the most", len(n.items), most)
	}
	list = make([]string, 0, len(n.items))
	for i, item := range n.items {
		s, bad := item.str()
		if bad != "" {
			return nil, fmt.Sprintf("item %d %s%s", i+1, bad, inQuotes(item))
		}
		list = append(list, s)
	}
	return list, ""
}

// inQuotes is what to do about a number or a truth where a string has to be: by far the most frequent mistake.
func inQuotes(n node) string {
	if n.kind == '0' || n.kind == 't' || n.kind == 'f' {
		return ": put it in quotes"
	}
	return ""
}

func (n node) number() (v float64, bad string) {
	if n.kind != '0' {
		return 0, "is " + n.what() + " and has to be a number"
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, "is too large a number"
	}
	return v, ""
}

func (n node) whole(least, most int) (v int, bad string) {
	f, bad := n.number()
	switch {
	case bad != "":
		return 0, bad
	case f != math.Trunc(f) || f < float64(least) || f > float64(most):
		return 0, fmt.Sprintf("has to be a whole number from %d to %d", least, most)
	}
	return int(f), ""
}

func (n node) seconds(least, most time.Duration) (d time.Duration, bad string) {
	f, bad := n.number()
	switch {
	case bad != "":
		return 0, bad
	case f < least.Seconds() || f > most.Seconds():
		return 0, fmt.Sprintf("has to be a number of seconds from %v to %v", least.Seconds(), most.Seconds())
	}
	return time.Duration(f * float64(time.Second)), ""
}

// table is an object of at most most strings with names of its own.
func (n node) table(most int) (members []member, bad string) {
	if n.kind != '{' {
		return nil, "is " + n.what() + " and has to be an object of strings"
	}
	if len(n.members) > most {
		return nil, fmt.Sprintf("has %d members; %d are the most", len(n.members), most)
	}
	return n.members, ""
}
