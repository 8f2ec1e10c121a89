package demo

import (
	"context"
	"strings"
)

// line is one kind of line in a prompt: its word, what follows it, what it does.
type line struct {
	word, takes, does string
	run               func(s script, ctx context.Context, rest string) error
}

// table is every line that is no echo.
func table() []line {
	return []line{
		{"/search", "WORDS", "search_capabilities, the names found", script.search},
		{"/call", "NAME {json}", `execute_capability, its content; images as [image TYPE N bytes]; an error result as "error: …"`, script.call},
		{"/ask", "[NAME]", "session/request_permission with allow and reject, the choice; NAME is the capability that it is about", script.ask},
		{"/ask-of", "KINDS [NAME]", "the same with an option of each kind (a,b), the kind chosen", script.askOf},
		{"/ask-deaf", "", "/ask whose question stays open when the turn is cancelled, and the turn with it", script.askDeaf},
		{"/sleep", "2s", "waits, cancellable", script.sleep},
		{"/work", "2s", "the same behind a tool call that stays open", script.work},
		{"/deaf", "2s", "waits, cancelled or not", script.deaf},
		{"/sour", "2s", "waits, and answers a cancel with an error", script.sour},
		{"/flood", "N", "N updates of 1 KiB", script.flood},
		{"/emit", "N", "one update of N bytes", script.emit},
		{"/update", "{json}", "a session/update of any kind, as it stands", script.update},
		{"/late", "TEXT", "an update behind the turn's answer", script.late},
		{"/twice", "", "the turn is answered twice", script.twice},
		{"/stop", "REASON", "ends the turn with that stop reason", script.stop},
		{"/fail", "CODE TEXT", "ends the turn with that error", script.fail},
		{"/read", "PATH", "fs/read_text_file, the text, when the client offers it", script.read},
		{"/elicit", "TEXT", "elicitation/create with a form of one answer, when the client offers it", script.elicit},
		{"/request", "METHOD {json}", "any request to the client, offered or not; its result or error as it came. sessionId is filled in", script.request},
		{"/notify", "METHOD {json}", "any notification to the client. sessionId is filled in", script.notify},
		{"/mode", "", "the session's mode and options", script.mode},
		{"/crash", "", "exits 3", script.crash},
		{"/hang", "", "ignores SIGTERM, stops reading, never answers", script.hang},
		{"/garbage", "", "a line on standard output that is not JSON", script.garbage},
		{"/stderr", "N", "N bytes on standard error", script.stderr},
		{"/fork", "", "leaves a grandchild", script.fork},
		{"/new", "", "the parameters that the session was opened with, tokens masked", script.opened},
	}
}

// Lines is the table for people, one line each.
func Lines() string {
	var text strings.Builder
	for _, one := range table() {
		text.WriteString("  " + padded(one.word+" "+one.takes) + one.does + "\n")
	}
	return text.String()
}

func padded(word string) string { return word + strings.Repeat(" ", max(1, 24-len(word))) }

// line does what one line of the prompt says.
func (s script) line(ctx context.Context, text string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if word == "" {
		return nil
	}
	for _, one := range table() {
		if one.word == word {
			s.word = word
			return one.run(s, ctx, strings.TrimSpace(rest))
		}
	}
	return s.stream(ctx, "echo: "+text+"\n")
}
