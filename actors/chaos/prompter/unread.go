package prompter

import (
	"context"
	"time"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
)

// What an agent says while its client does not read: more than all buffers between the two take. What may be in the pod is what the agent
// has said and the socket has not taken: 1 MiB in 256 lines (docs/limits.md), what each line weighs beside its bytes, and some more.
const (
	unreadLines, unreadBytes = 1500, 16 << 10
	UnreadInPod              = 4 << 20
)

// NewUnread is a turn in which the agent says that much to a client that reads nothing for a while.
func NewUnread(key string, while time.Duration) *Turn {
	t := NewTurn(key, agent.Strike{}, 3, 64, 0)
	last := len(t.Script) - 1
	t.Script = append(t.Script[:last:last], agent.Step{Do: "fill", N: unreadLines, Bytes: unreadBytes}, t.Script[last])
	t.Unread = while
	return t
}

// Fill is how many bytes of filling a turn's script asks for.
func (t *Turn) Fill() (n int) {
	for _, step := range t.Script {
		if step.Do == "fill" {
			n += step.N * step.Bytes
		}
	}
	return n
}

// Unread reads nothing for as long as the turn says, and looks meanwhile at how many bytes the pod keeps for the session: used tells it,
// false when it cannot. It gives the most that was seen. The turn has been prompted already.
func (s *Session) Unread(ctx context.Context, t *Turn, used func(ctx context.Context, place string) (int64, bool)) (most int64) {
	if narrow, ok := s.peer.Socket().NetConn().(interface{ SetReadBuffer(int) error }); ok {
		_ = narrow.SetReadBuffer(64 << 10) // of a wide one only more would have to be said
	}
	resume := s.peer.Pause()
	defer resume()
	for end := time.Now().Add(t.Unread); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
		if used == nil {
			continue
		}
		if n, ok := used(ctx, s.Place()); ok {
			most = max(most, n)
		}
	}
	return most
}

// unread does such a turn, and judges what the pod has kept.
func (d *Driver) unread(ctx context.Context, s *Session, t *Turn, answer <-chan peer.Reply) (string, error) {
	d.cfg.Faults.Injected(agent.Flood, "unread")
	words := []string{s.Place(), s.peer.Name()}
	if most := s.Unread(ctx, t, d.cfg.Used); most > UnreadInPod {
		d.cfg.Book.Break(invariant.Accounts, words, "%s: the pod kept %d bytes of what its agent said to a client that did not read, and could have let the agent wait", s.Place(), most)
	} else if most > 0 {
		d.cfg.Book.Exercise(invariant.Accounts)
	}
	end, err := s.Wait(ctx, answer)
	if err != nil && s.peer.CloseCode() == tryAgainLater {
		d.cfg.Book.Break(invariant.Told, words, "%s was closed with %d because it read nothing for %s, and could have let the agent wait", s.peer.Name(), tryAgainLater, t.Unread)
	}
	return end, err
}

// tryAgainLater is the code of a close for load.
const tryAgainLater = 1013
