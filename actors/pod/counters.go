package pod

import (
	"github.com/acpod/acpod/actors/connection"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/process"
)

// counters gathers what the parts of the pod counted, for one scrape.
func (l *life) counters() []inspect.Counter {
	var out []inspect.Counter
	if l.sessions != nil {
		out = append(out, socketCounters(l.gateway.Stats())...)
		minted, revoked := l.sessions.Tokens().Counts()
		out = append(out, tokenCounters(minted, revoked)...)
		out = append(out, inspect.Counter{
			Name: "acpod_updates_merged_total", Help: "Updates of agents that went to slow clients as part of another's frame.", Value: l.sessions.Merged(),
		})
		out = append(out, slotCounters(l.admission.Counts())...)
		out = append(out, tunnelCounters(l.tunnels.Snapshot())...)
	}
	out = append(out, childCounters(process.Totals())...)
	return append(out, callCounters(l.recorder.Outcomes())...)
}

// childCounters tell the processor time of child processes by kind: agent, provider, other.
func childCounters(totals map[string]process.Total) (out []inspect.Counter) {
	for kind, t := range totals {
		out = append(out, inspect.Counter{
			Name: "acpod_children_cpu_milliseconds_total", Help: "Processor time of child processes and all that they started, as seen every few seconds.",
			Label: "kind", Is: kind, Value: t.CPU.Milliseconds(),
		})
	}
	return out
}

// socketCounters turns what the gateway counted into metrics. Labels are the gateway's own words.
func socketCounters(s connection.Stats) []inspect.Counter {
	out := []inspect.Counter{
		{Name: "acpod_socket_frames_total", Help: "Frames of /acp sockets.", Label: "direction", Is: "in", Value: s.FramesIn},
		{Name: "acpod_socket_frames_total", Help: "Frames of /acp sockets.", Label: "direction", Is: "out", Value: s.FramesOut},
		{Name: "acpod_socket_bytes_total", Help: "Payload bytes of /acp sockets.", Label: "direction", Is: "in", Value: s.BytesIn},
		{Name: "acpod_socket_bytes_total", Help: "Payload bytes of /acp sockets.", Label: "direction", Is: "out", Value: s.BytesOut},
		{Name: "acpod_socket_replaced_bytes_total", Help: "Bytes that were not UTF-8 and became U+FFFD.", Value: s.NotUTF8},
		{Name: "acpod_socket_binary_frames_total", Help: "Binary frames ignored.", Value: s.Binary},
		{Name: "acpod_socket_late_answers_total", Help: "Answers of clients that nobody waited for.", Value: s.LateAnswers},
	}
	for reason, n := range s.Exits {
		out = append(out, inspect.Counter{Name: "acpod_socket_ends_total", Help: "Ends of /acp sockets.", Label: "reason", Is: string(reason), Value: n})
	}
	for why, n := range s.Refused {
		out = append(out, inspect.Counter{Name: "acpod_upgrades_refused_total", Help: "Upgrades refused.", Label: "why", Is: why, Value: n})
	}
	return out
}

// tokenCounters are such that minted = revoked + acpod_pod_tokens_live whenever no token is being minted or revoked.
func tokenCounters(minted, revoked int64) []inspect.Counter {
	return []inspect.Counter{
		{Name: "acpod_tokens_minted_total", Help: "Session tokens made.", Value: minted},
		{Name: "acpod_tokens_revoked_total", Help: "Session tokens revoked.", Value: revoked},
	}
}

// slotCounters tell who came in and went, by the limit that counts them. Taken less returned is what is in use.
func slotCounters(counts []admission.Count) (out []inspect.Counter) {
	for _, c := range counts {
		for _, one := range []inspect.Counter{
			{Name: "acpod_slots_taken_total", Help: "Slots given to who came in.", Value: c.Admitted},
			{Name: "acpod_slots_returned_total", Help: "Slots given back.", Value: c.Released},
			{Name: "acpod_slots_refused_total", Help: "Claims that found a limit reached.", Value: c.Refused},
		} {
			one.Label, one.Is = "scope", c.Scope
			out = append(out, one)
		}
	}
	return out
}

// tunnelCounters tell each MCP connection of a client that was opened, and how it was closed.
func tunnelCounters(c tunnel.Connections) []inspect.Counter {
	closed := func(how string, n int64) inspect.Counter {
		return inspect.Counter{Name: "acpod_mcp_connections_closed_total", Help: "MCP connections of clients that ended.", Label: "how", Is: how, Value: n}
	}
	return []inspect.Counter{
		closed("disconnected", c.Disconnected), closed("unanswered", c.Unanswered), closed("socket_gone", c.SocketGone),
		closed("late", c.Late), closed("taken", c.Taken),
		{Name: "acpod_mcp_connections_opened_total", Help: "MCP connections that clients opened.", Value: c.Opened},
	}
}

// callCounters tell how calls of tools ended, in the words of the audit.
func callCounters(outcomes map[string]int64) []inspect.Counter {
	out := make([]inspect.Counter, 0, len(outcomes))
	for outcome, n := range outcomes {
		out = append(out, inspect.Counter{Name: "acpod_calls_total", Help: "Calls of tools that ended, by outcome; refused ones were never sent.", Label: "outcome", Is: outcome, Value: n})
	}
	return out
}
