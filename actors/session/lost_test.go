package session

import (
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// What real agents answer when they are asked for a session that they do not have, and errors that say something else.
func TestWhatAgentsSayOfALostConversation(t *testing.T) {
	for raw, lost := range map[string]bool{
		`{"code":-32603,"message":"Internal error","data":{"details":"no rollout found for thread id 9b1d8a52-36b7-4d52-9b87-aaaaaaaaaaaa"}}`:                                          true,
		`{"code":-32603,"message":"Internal error","data":{"details":"invalid session id: invalid character: expected an optional prefix"}}`:                                           true,
		`{"code":-32603,"message":"Internal error","data":{"details":"No previous sessions found for this project."}}`:                                                                 true,
		`{"code":-32603,"message":"Internal error","data":{"details":"Invalid session identifier \"x\"."}}`:                                                                            true,
		`{"code":-32603,"message":"Internal error","data":{"details":"Claude Code returned an error result: Error: --resume requires a valid session ID or session title when used"}}`: true,
		`{"code":-32603,"message":"no session found"}`:                                                                       true,
		`{"code":-32002,"message":"Resource not found"}`:                                                                     true,
		`{"code":-32603,"message":"Internal error: OpenCode service failure","data":{"service":"session"}}`:                  false,
		`{"code":-32603,"message":"Internal error","data":{"details":"connect ECONNREFUSED 127.0.0.1:9"}}`:                   false,
		`{"code":-32603,"message":"Internal error","data":{"details":"the session is locked by another process"}}`:           false,
		`{"code":-32000,"message":"Authentication required","data":{"details":"no session found"}}`:                          false,
		`{"code":-32603,"message":"Internal error","data":{"details":"` + strings.Repeat("x", 3000) + ` no session found"}}`: false,
	} {
		if forGood(jsonrpc.ParseError([]byte(raw))) != lost {
			t.Errorf("for good is not %v for %s", lost, raw)
		}
	}
}
