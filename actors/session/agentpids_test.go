package session

import (
	"crypto/sha256"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/process"
)

func TestAnAgentIsFoundByItsPidAndStartTimeUntilItsTokenOrItsGenerationEnds(t *testing.T) {
	tokens := &Tokens{}
	pids := newAgentPIDs(tokens)
	begin := func(tag string, pid int, start uint64) (string, *identity) {
		token := tokens.Mint(capability.Caller{Tag: tag})
		who := &identity{pids: pids, entry: pidEntry{sha256.Sum256([]byte(token)), "session " + tag}}
		who.started(process.Group{PGID: pid, Start: start})
		return token, who
	}
	first, one := begin("a", 100, 7)
	_, other := begin("b", 100, 9) // the pid was used again
	found, ok := pids.Find(100, 7)
	if !ok || found.Caller.Tag != "a" || found.Session != "session a" || found.Caller.Token != sha256.Sum256([]byte(first)) {
		t.Fatalf("%+v %v", found, ok)
	}
	if again, ok := pids.Find(100, 9); !ok || again.Caller.Tag != "b" {
		t.Errorf("%+v %v", again, ok)
	}
	for _, strange := range []pidKey{{100, 8}, {101, 7}, {0, 0}, {1, 1}} {
		if found, ok := pids.Find(strange.pid, strange.start); ok {
			t.Errorf("%+v is %+v", strange, found)
		}
	}
	select {
	case <-found.Ended:
		t.Fatal("it has not ended")
	default:
	}
	tokens.Revoke(first)
	<-found.Ended
	late, ok := pids.Find(100, 7)
	if ok {
		t.Error("an agent is found although its token was revoked")
	}
	<-late.Ended
	one.end()
	other.end()
	other.end()
	if _, ok := pids.Find(100, 9); ok || pids.Len() != 0 {
		t.Errorf("an agent is found behind the end of its generation, of %d", pids.Len())
	}
}

func TestAProcessThatComesBehindTheEndOfItsGenerationIsNotEntered(t *testing.T) {
	tokens := &Tokens{}
	pids := newAgentPIDs(tokens)
	token := tokens.Mint(capability.Caller{})
	late := &identity{pids: pids, entry: pidEntry{sha: sha256.Sum256([]byte(token))}}
	late.end()
	late.started(process.Group{PGID: 5, Start: 5})
	unknown := &identity{pids: pids, entry: pidEntry{sha: sha256.Sum256([]byte(token))}}
	unknown.started(process.Group{PGID: 6}) // /proc did not tell when it started
	without := &identity{pids: pids}
	without.started(process.Group{PGID: 7, Start: 7})
	if pids.Len() != 0 {
		t.Errorf("%d were entered", pids.Len())
	}
}
