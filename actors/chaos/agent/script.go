package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Bounds of what one line of a script may ask for.
const (
	maxChunks     = 1 << 20
	maxChunkBytes = 32 << 20
	maxScript     = 4096 // lines
)

// Script is what a prompt asks for, one step a line:
//
//	turn KEY              the key of everything that follows; letters, digits, - and _
//	chunks N [BYTES]      N numbered chunks, each padded to BYTES
//	thoughts N [BYTES]    the same as the agent's thoughts
//	fill N BYTES          N thoughts of BYTES in which nothing is said, cheap to write and to count
//	call NAME [JSON]      execute_capability through the facade, reported as a tool call; its outcome as a note
//	search [WORDS]        search_capabilities; the number of names as a note
//	ask                   a permission request; the choice as a note
//	sleep 2s              waits; a cancel ends it
//	fault FAULT:STAGE     arms a strike of this turn; it strikes at the next such stage
//	end REASON            the stop reason, instead of end_turn
//	fail CODE             the prompt is answered with that error
type Script []Step

// Step is one line of a script.
type Step struct {
	Do     string
	N      int           // chunks, thoughts, fill, fail
	Bytes  int           // chunks, thoughts, fill
	Text   string        // turn: the key; call: the name; search: the words; end: the reason
	JSON   string        // call: the arguments, "" = none
	For    time.Duration // sleep
	Strike Strike        // fault
}

// ParseScript reads the text of a prompt.
func ParseScript(text string) (Script, error) {
	var script Script
	number := 0
	for line := range strings.Lines(text) {
		number++
		if number > maxScript {
			return nil, fmt.Errorf("the script has more than %d lines", maxScript)
		}
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		step, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		script = append(script, step)
	}
	return script, nil
}

func parseStep(line string) (s Step, err error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	s.Do = word
	switch word {
	case "turn":
		s.Text, err = parseKey(rest)
	case "chunks", "thoughts", "fill":
		s.N, s.Bytes, err = parseChunks(rest)
	case "call":
		name, arguments, _ := strings.Cut(rest, " ")
		s.Text, s.JSON = name, strings.TrimSpace(arguments)
		if name == "" || s.JSON != "" && !jsonrpc.Valid([]byte(s.JSON)) {
			err = fmt.Errorf("call takes a name and, if it has any, its arguments as JSON")
		}
	case "search":
		s.Text = rest
	case "ask":
		if rest != "" {
			err = fmt.Errorf("ask takes nothing")
		}
	case "sleep":
		if s.For, err = time.ParseDuration(rest); err == nil && (s.For < 0 || s.For > time.Hour) {
			err = fmt.Errorf("a sleep of %v is out of range", s.For)
		}
	case "fault":
		if s.Strike, err = ParseStrike(rest); err == nil && !s.Strike.InTurn() {
			err = fmt.Errorf("%s is for a plan: it does not happen in a turn", s.Strike)
		}
	case "end":
		s.Text = rest
		switch rest {
		case acp.StopEndTurn, acp.StopMaxTokens, acp.StopMaxTurnRequests, acp.StopRefusal, acp.StopCancelled:
		default:
			err = fmt.Errorf("%q is no stop reason", rest)
		}
	case "fail":
		if s.N, err = strconv.Atoi(rest); err == nil && (s.N < -1<<31 || s.N > 1<<31-1) {
			err = fmt.Errorf("%d is no error code", s.N)
		}
	default:
		err = fmt.Errorf("%q is no step", word)
	}
	return s, err
}

func parseKey(text string) (string, error) {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if text == "" || len(text) > 64 || strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return "", fmt.Errorf("%q is no key", text)
	}
	return text, nil
}

func parseChunks(text string) (n, size int, err error) {
	words := strings.Fields(text)
	if len(words) < 1 || len(words) > 2 {
		return 0, 0, fmt.Errorf("a number and, if wanted, bytes are needed")
	}
	if n, err = strconv.Atoi(words[0]); err != nil || n < 0 || n > maxChunks {
		return 0, 0, fmt.Errorf("%q is no number of chunks", words[0])
	}
	if len(words) == 2 {
		if size, err = strconv.Atoi(words[1]); err != nil || size < 0 || size > maxChunkBytes {
			return 0, 0, fmt.Errorf("%q is no size of a chunk", words[1])
		}
	}
	return n, size, nil
}

// String is the text that ParseScript reads.
func (s Script) String() string {
	var b strings.Builder
	for _, step := range s {
		b.WriteString(step.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// String is the line.
func (s Step) String() string {
	switch s.Do {
	case "turn", "search", "end":
		return strings.TrimSpace(s.Do + " " + s.Text)
	case "chunks", "thoughts", "fill":
		return fmt.Sprintf("%s %d %d", s.Do, s.N, s.Bytes)
	case "call":
		return strings.TrimSpace("call " + s.Text + " " + s.JSON)
	case "sleep":
		return "sleep " + s.For.String()
	case "fault":
		return "fault " + s.Strike.String()
	case "fail":
		return "fail " + strconv.Itoa(s.N)
	}
	return s.Do
}
