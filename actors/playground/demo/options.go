package demo

import (
	"context"
	"errors"

	acp "github.com/coder/acp-go-sdk"
)

// Two modes, as agents have them: in the second nobody is asked. The mode is an option too, beside one that is none.
const (
	modeAsk    acp.SessionModeId        = "ask"
	modeAuto   acp.SessionModeId        = "auto"
	paceFast   acp.SessionConfigValueId = "fast"
	paceSlow   acp.SessionConfigValueId = "slow"
	optionMode acp.SessionConfigId      = "mode"
	optionPace acp.SessionConfigId      = "pace"
)

func (a *Agent) modes(session *conversation) *acp.SessionModeState {
	if a.does[plain] {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return &acp.SessionModeState{CurrentModeId: session.mode, AvailableModes: []acp.SessionMode{
		{Id: modeAsk, Name: "Ask", Description: acp.Ptr("/ask asks")}, {Id: modeAuto, Name: "Auto", Description: acp.Ptr("/ask asks nobody")},
	}}
}

func (a *Agent) options(session *conversation) []acp.SessionConfigOption {
	if a.does[plain] {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	one := func(id acp.SessionConfigId, name string, current acp.SessionConfigValueId, values ...acp.SessionConfigValueId) acp.SessionConfigOption {
		choices := acp.SessionConfigSelectOptionsUngrouped{}
		for _, value := range values {
			choices = append(choices, acp.SessionConfigSelectOption{Name: string(value), Value: value})
		}
		return acp.SessionConfigOption{Select: &acp.SessionConfigOptionSelect{
			Id: id, Name: name, CurrentValue: current, Options: acp.SessionConfigSelectOptions{Ungrouped: &choices},
		}}
	}
	mode := one(optionMode, "Mode", acp.SessionConfigValueId(session.mode), acp.SessionConfigValueId(modeAsk), acp.SessionConfigValueId(modeAuto))
	mode.Select.Category = acp.Ptr(acp.SessionConfigOptionCategoryMode)
	return []acp.SessionConfigOption{mode, one(optionPace, "Pace", session.pace, paceFast, paceSlow)}
}

// SetSessionMode changes whether /ask asks, and says so in an update.
func (a *Agent) SetSessionMode(ctx context.Context, request acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	session, err := a.live(request.SessionId)
	if err == nil {
		err = a.setMode(ctx, session, request.ModeId)
	}
	return acp.SetSessionModeResponse{}, err
}

func (a *Agent) setMode(ctx context.Context, session *conversation, mode acp.SessionModeId) error {
	if mode != modeAsk && mode != modeAuto {
		return acp.NewInvalidParams(map[string]any{"reason": "no such mode"})
	}
	a.mu.Lock()
	session.mode = mode
	a.mu.Unlock()
	return a.say(ctx, session.id, acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{CurrentModeId: mode}})
}

// SetSessionConfigOption changes the mode or the pace.
func (a *Agent) SetSessionConfigOption(ctx context.Context, request acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	chosen := request.ValueId
	if chosen == nil {
		return acp.SetSessionConfigOptionResponse{}, acp.NewInvalidParams(map[string]any{"reason": "no option is on or off"})
	}
	session, err := a.live(chosen.SessionId)
	switch {
	case err != nil:
	case chosen.ConfigId == optionMode:
		err = a.setMode(ctx, session, acp.SessionModeId(chosen.Value))
	case chosen.ConfigId == optionPace && (chosen.Value == paceFast || chosen.Value == paceSlow):
		a.mu.Lock()
		session.pace = chosen.Value
		a.mu.Unlock()
	default:
		err = acp.NewInvalidParams(map[string]any{"reason": "no such option or value"})
	}
	if err != nil {
		return acp.SetSessionConfigOptionResponse{}, err
	}
	return acp.SetSessionConfigOptionResponse{ConfigOptions: a.options(session)}, nil
}

// live finds an open session that has modes and options.
func (a *Agent) live(id acp.SessionId) (*conversation, error) {
	if a.does[plain] {
		return nil, acp.NewMethodNotFound("a plain agent has no modes and options")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if session := a.sessions[id]; session != nil {
		return session, nil
	}
	return nil, unknownSession(errors.New("open it first"))
}

func (s script) mode(ctx context.Context, _ string) error {
	s.agent.mu.Lock()
	text := "mode " + string(s.session.mode) + ", pace " + string(s.session.pace) + "\n"
	s.agent.mu.Unlock()
	return s.stream(ctx, text)
}
