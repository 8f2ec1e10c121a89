package session

import (
	"errors"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// memory is what a client has to be told of its agent's: whether it is the one that the client knows.
type memory uint8

const (
	memoryAlive    memory = iota // the same process, or one that the client was told of
	memoryRestored               // another process, which was given the conversation back
	memoryFresh                  // another process, which knows nothing of the conversation
)

func (m memory) String() string { return [...]string{"alive", "restored", "fresh"}[m] }

// after is what is told when an agent was asked that question and said yes. Who has not been told of a forgotten conversation is not
// told of what came after it as if nothing were lost.
func (m memory) after(q question) memory {
	switch {
	case q == askNew:
		return memoryFresh
	case m == memoryAlive:
		return memoryRestored
	}
	return m
}

// question is what an agent is asked to open.
type question uint8

const (
	askNew    question = iota // session/new
	askResume                 // session/resume: a conversation that it knows, without a word of it
	askLoad                   // session/load: … with all of it again
	askFork                   // session/fork: a copy of one
)

func (q question) method() string {
	return [...]string{acp.MethodSessionNew, acp.MethodSessionResume, acp.MethodSessionLoad, acp.MethodSessionFork}[q]
}

// recalling is what an agent is asked to bring back.
type recalling struct {
	id     string // the agent's own, "" = nothing is known to it
	fork   bool   // to copy it
	replay bool   // somebody wants to see it all again
	tried  uint8  // questions that this agent has refused for good, by bit
}

// next is the question to an agent that offers that much.
func (r recalling) next(offers *acp.AgentInfo) question {
	may := func(q question, offered bool) bool { return offered && r.tried&(1<<q) == 0 }
	switch {
	case r.fork:
		return askFork
	case r.id == "":
	case r.replay && may(askLoad, offers.LoadSession):
		return askLoad
	case may(askResume, offers.Session.Resume):
		return askResume
	case may(askLoad, offers.LoadSession):
		return askLoad
	}
	return askNew
}

// forGood tells whether an agent's error says that it has no such conversation, today or tomorrow. Anything else (it is overloaded, wants a
// login, has died) may pass, and the conversation's id is kept.
func forGood(err error) bool {
	theirs, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return false
	}
	switch theirs.Code {
	case jsonrpc.NotInitialized /* ACP: resource not found */, jsonrpc.InvalidParams, jsonrpc.MethodNotFound:
		return true
	}
	return saysLost(theirs)
}

// history tells whether an update of that kind is something that was said, and not how things stand.
func history(kind string) bool {
	switch kind {
	case acp.UpdateUserMessage, acp.UpdateAgentMessage, acp.UpdateAgentThought, acp.UpdateToolCall, acp.UpdateToolCallUpdate, acp.UpdatePlan:
		return true
	}
	return false
}
