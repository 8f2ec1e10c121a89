package session

import (
	"regexp"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// lostWords are how agents say in -32603 that they do not have a conversation: Codex, Gemini and Claude's adapter have no code of
// their own for it (measured 2026-11; the test has their answers). opencode's answer tells nothing, and is taken for one that may pass.
var lostWords = regexp.MustCompile(`(?i)\bno (rollout|thread|conversation|(previous )?sessions?) (was )?found\b|\binvalid session id|\bvalid session id\b`)

// lostText bounds how much of an error is read for them.
const lostText = 2 << 10

// saysLost tells whether an agent's internal error says that the conversation is not there.
func saysLost(e *jsonrpc.Error) bool {
	return e.Code == jsonrpc.Internal &&
		(lostWords.MatchString(e.Message[:min(len(e.Message), lostText)]) || lostWords.Match(e.RawData[:min(len(e.RawData), lostText)]))
}
