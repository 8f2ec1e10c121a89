package tunnel

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestATunnelForWhichItsSessionHasNoRoomFailsAndSaysWhy(t *testing.T) {
	for name, row := range map[string]struct {
		limit int64
		state State
	}{
		"room":    {Footprint + 64<<10, Connecting},
		"no room": {Footprint - 1, Failed},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &lab{socket: &socket{t: t, gone: make(chan struct{}), bound: map[string]kernel.Ref{}, sent: map[*kernel.Question]Out{}, probe: kerneltest.NewProbe()}}
			l.k = kerneltest.Start(t, kernel.Options{Limit: row.limit})
			l.session, l.parent = kerneltest.Root(t, l.k)
			l.desk = kerneltest.NewProbe()
			l.deskRef = kerneltest.Spawn(t, l.session, l.desk.Spec("desk"))
			l.socket.ref = kerneltest.Spawn(t, l.session, l.probe.Spec("client"))
			l.open(declaredA, Limits{})
			st := l.tunnel.Status()
			if st.State != row.state || (row.state == Failed) != strings.Contains(st.Reason, "pod_bytes") {
				t.Errorf("%s: %+v", name, st)
			}
			if used := l.k.Account().Used(); row.state == Connecting && used < Footprint {
				t.Errorf("%s: %d bytes are charged", name, used)
			}
		})
	}
}
