package bridge

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peer is the process that has connected, as the kernel tells it.
type peer struct {
	pid  int // 0 = in no pid namespace that we see
	held *os.File
	gone bool // it had ended before it was looked at
}

// peerOf asks the socket. Where the kernel is able to (Linux 6.5), the process is held by a descriptor as well, so that it can be told
// afterwards whether the pid was its all the time.
func peerOf(conn *net.UnixConn) (peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var p peer
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = err
			return
		}
		p.pid = int(cred.Pid)
		held, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		switch {
		case err == nil:
			unix.CloseOnExec(held)
			p.held = os.NewFile(uintptr(held), "pidfd")
		case !errors.Is(err, syscall.ENOPROTOOPT):
			p.gone = true
		}
	})
	return p, errors.Join(err, failed)
}

// still tells whether the process has had its pid all the time: it lives, or nobody has asked yet how it ended. Without a descriptor
// nothing speaks against it.
func (p peer) still() bool {
	if p.held == nil {
		return !p.gone
	}
	raw, err := p.held.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Control(func(fd uintptr) { alive = unix.PidfdSendSignal(int(fd), 0, nil, 0) == nil })
	return err == nil && alive
}

func (p peer) release() {
	if p.held != nil {
		_ = p.held.Close()
	}
}

// agentOfPeer tells whose relay has connected.
func agentOfPeer(conn *net.UnixConn, read table, find func(int, uint64) (Agent, bool)) (Agent, reason) {
	p, err := peerOf(conn)
	if err != nil {
		return Agent{}, noPid
	}
	defer p.release()
	agent, why := agentOf(read, find, p.pid, os.Getpid())
	if why == "" && !p.still() {
		return Agent{}, changed
	}
	return agent, why
}
