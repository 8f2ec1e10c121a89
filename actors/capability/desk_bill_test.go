package capability

import (
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestWhatADeskRemembersIsPaidFor(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	account := k.Account().Child("session_bytes", 10_000)
	defer account.Close()
	var b bill
	if !b.pay(account, 1000, 2, 3) || account.Used() != 1000+2*declaredBytes+3*keyBytes {
		t.Errorf("%d bytes are paid", account.Used())
	}
	before := account.Used()
	if b.pay(account, 9000, 2, 3) || account.Used() != before || b.names != 1000 {
		t.Errorf("there was no room, and %d bytes are paid", account.Used())
	}
	if !b.pay(account, 1000, 2, 0) || account.Used() != 1000+2*declaredBytes {
		t.Errorf("%d bytes are paid once the keys are gone", account.Used())
	}
	b.lease.Release()
	if account.Used() != 0 {
		t.Errorf("%d bytes stay", account.Used())
	}
	n := names{}.extend([]binding{of("server", "tool"), of("other", "tool")})
	if got, want := n.bytes(), int64(2*nameBytes+2*(len("tool")+len("server"))+2*len("tool")+2*(len("server.tool")+len("other"))+2*len("tool")); got > want+64 || got < want-64 {
		t.Errorf("two names cost %d, about %d were expected", got, want)
	}
}
