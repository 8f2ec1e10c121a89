package session

import (
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// renewBefore keeps the leases of this pod from ending.
func (v *supervisor) renewBefore(left time.Duration) {
	if v.renewEvery == 0 {
		v.renewEvery = max(left/3, time.Second)
		v.c.After(v.renewEvery, renew{})
	}
}

func (v *supervisor) onRenew() {
	store := v.s.cfg.Store
	v.c.Go("renew", func(ctx context.Context) kernel.Msg {
		ctx, cancel := context.WithTimeout(ctx, storeWait)
		defer cancel()
		return renewed{store.Renew(ctx)}
	})
}

// onRenewed asks for each record when one of them was lost: which one, its next change tells.
func (v *supervisor) onRenewed(m renewed) {
	if m.err != nil {
		v.c.Refuse("session_records")
		v.c.Log().Error("the leases of sessions were not renewed", "err", m.err.Error())
	}
	if errors.Is(m.err, ErrLeaseLost) {
		for _, rec := range v.records {
			if rec.living() && rec.kept.shelf != nil {
				v.write(rec, nil)
			}
		}
	}
	v.c.After(v.renewEvery, renew{})
}
