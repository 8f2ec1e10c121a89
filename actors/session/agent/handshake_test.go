package agent

import (
	"fmt"
	"strings"
	"testing"
)

// The answer of initialize is kept as long as its agent, by the pod and on no session's account: its length is bounded, to the byte.
func TestTheAnswerOfInitializeIsBounded(t *testing.T) {
	answer := func(size int) []byte {
		head, tail := `{"protocolVersion":1,"agentInfo":{"name":"`, `","version":"1"}}`
		return []byte(head + strings.Repeat("n", size-len(head)-len(tail)) + tail)
	}
	if _, err := parseInfo(answer(maxInfo)); err != nil {
		t.Errorf("%d bytes: %v", maxInfo, err)
	}
	if _, err := parseInfo(answer(maxInfo + 1)); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxInfo)) {
		t.Errorf("%d bytes: %v", maxInfo+1, err)
	}
}
