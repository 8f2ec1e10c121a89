package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/wire"
)

// enterPatience is how long a pod that is said to run may take to let one client in.
const enterPatience = 15 * time.Second

// enter looks whether a pod that runs can be attacked: a run to which nobody answers would break no promise.
func (r *run) enter(ctx context.Context, p *pod.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, enterPatience)
	defer cancel()
	socket, err := wire.Open(ctx, wire.Dial{URL: r.o.Target, Key: r.o.Key})
	if refused, ok := errors.AsType[*wire.Refused](err); ok && refused.Status == http.StatusUnauthorized {
		if r.o.Key == "" {
			return fmt.Errorf("the pod at %s asks for a key: give it with --key-file", r.o.Target)
		}
		return fmt.Errorf("the pod at %s does not take the key of --key-file", r.o.Target)
	}
	if err != nil {
		return fmt.Errorf("no pod can be entered at --target %s: %w", r.o.Target, err)
	}
	_ = socket.Close(1000, "")
	socket.Reset()
	switch _, err := p.Tree(ctx); {
	case errors.Is(err, pod.ErrNoDebug):
		return nil
	case err != nil:
		return fmt.Errorf("the pod's tree cannot be read at --debug %s: %w", r.o.Debug, err)
	}
	return nil
}
