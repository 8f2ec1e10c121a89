package pod

import (
	"github.com/acpod/acpod/actors/connection"
	"github.com/acpod/acpod/runtime/inspect"
)

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
