package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Variable is what the agent reads its behaviour from.
const Variable = "DEMO_AGENT"

// behaviour is a word of the variable.
type behaviour string

const (
	plain      behaviour = "plain"
	noHTTP     behaviour = "no-http"
	noLoad     behaviour = "no-load"
	noResume   behaviour = "no-resume"
	early      behaviour = "early"
	replays    behaviour = "replay"
	forgets    behaviour = "forget"
	flaky      behaviour = "flaky"
	null       behaviour = "null"
	refuseHTTP behaviour = "refuse-http"
	muteHTTP   behaviour = "mute-http"
	login      behaviour = "login"
)

var behaviours = map[behaviour]string{
	plain:      "offers what every agent has and nothing else",
	noHTTP:     "takes no http entry of mcpServers",
	noLoad:     "offers no session/load",
	noResume:   "offers no session/resume",
	early:      "an update for the new session before session/new is answered",
	replays:    "session/resume replays like session/load",
	forgets:    "knows no session on load, resume and fork: -32002",
	flaky:      "fails the first load or resume of each session with -32603",
	null:       "session/load is answered null",
	refuseHTTP: "session/new with an http entry is -32602",
	muteHTTP:   "session/new with an http entry is never answered",
	login:      "opens no session (-32000) until authenticate; offers logout after it",
}

// Behaviours is the list for people, one line each.
func Behaviours() string {
	var text strings.Builder
	for _, word := range slices.Sorted(maps.Keys(behaviours)) {
		text.WriteString("  " + padded(string(word)) + behaviours[word] + "\n")
	}
	return text.String()
}

// chosen are the words of the variable.
func chosen(value string) (map[behaviour]bool, error) {
	words := map[behaviour]bool{}
	for word := range strings.SplitSeq(value, ",") {
		one := behaviour(strings.TrimSpace(word))
		if one == "" {
			continue
		}
		if behaviours[one] == "" {
			return nil, fmt.Errorf("%s: %q is no behaviour of the demo agent: choose from %s", Variable, one, join(slices.Sorted(maps.Keys(behaviours))))
		}
		words[one] = true
	}
	return words, nil
}

func join(words []behaviour) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, ", ")
}
