package process

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fakeProc is a folder that looks like /proc.
type fakeProc struct {
	t *testing.T
	proc
}

func newFakeProc(t *testing.T) fakeProc {
	f := fakeProc{t, proc(t.TempDir())}
	f.write("net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	f.link("self/ns/pid", "pid:[4026531836]")
	return f
}

func (f fakeProc) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(string(f.proc), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f fakeProc) link(name, target string) {
	f.t.Helper()
	path := filepath.Join(string(f.proc), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		f.t.Fatal(err)
	}
}

// process is one with a start time of 10 times its pid.
func (f fakeProc) process(pid, ppid, pgrp, sid int, uid string, inodes ...int) {
	f.write(fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (a ) b) S %d %d %d 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 %d 0 7", pid, ppid, pgrp, sid, 10*pid))
	f.write(fmt.Sprintf("%d/status", pid), "Name:\ta\nUid:\t"+uid+"\t"+uid+"\t"+uid+"\t"+uid+"\n")
	for i, inode := range inodes {
		f.link(fmt.Sprintf("%d/fd/%d", pid, 3+i), fmt.Sprintf("socket:[%d]", inode))
	}
}

func (f fakeProc) socket(file, local, remote, uid string, inode int) {
	f.t.Helper()
	path := filepath.Join(string(f.proc), "net", file)
	old, _ := os.ReadFile(path)
	f.write("net/"+file, string(old)+fmt.Sprintf("   0: %s %s 01 00000000:00000000 02:00000000 00000000 %5s        0 %d 2 0 20 4 30 10 -1\n", local, remote, uid, inode))
}

// below makes it a pid namespace below the first.
func (f fakeProc) below() {
	_ = os.Remove(filepath.Join(string(f.proc), "self/ns/pid"))
	f.link("self/ns/pid", "pid:[4026532999]")
}

const (
	peerHex, podHex   = "0100007F:9C40", "0100007F:1F90" // 127.0.0.1:40000 and :8080
	peerWide, podWide = "0000000000000000FFFF00000100007F:9C40", "0000000000000000FFFF00000100007F:1F90"
	peerSix, podSix   = "00000000000000000000000001000000:9C40", "00000000000000000000000001000000:1F90"
)

func TestAPeerIsJudgedByWhoHoldsItsSocket(t *testing.T) {
	// 100 is the pod, 200 its agent, 300 a client.
	tree := func(f fakeProc) {
		f.process(1, 0, 1, 1, "0")
		f.process(100, 1, 100, 100, "7")
		f.process(300, 1, 300, 300, "7", 3000)
	}
	for name, c := range map[string]struct {
		make  func(fakeProc)
		six   bool
		want  bool
		quiet bool
	}{
		"a client": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7", 2000)
			f.socket("tcp", peerHex, podHex, "7", 3000)
		}, false, false, false},
		"the agent": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7", 1999, 2000)
			f.socket("tcp", peerHex, podHex, "7", 2000)
		}, false, true, false},
		"the agent, by a socket of IPv6 that speaks IPv4": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7", 2000)
			f.socket("tcp6", peerWide, podWide, "7", 2000)
		}, false, true, false},
		"the agent, by IPv6": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7", 2000)
			f.socket("tcp6", peerSix, podSix, "7", 2000)
		}, true, true, false},
		"a client by IPv6": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7", 2000)
			f.socket("tcp6", peerSix, podSix, "7", 3000)
		}, true, false, false},
		"a helper of a helper": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7")
			f.process(201, 200, 200, 100, "7")
			f.process(202, 201, 202, 202, "7", 2000)
			f.socket("tcp", peerHex, podHex, "7", 2000)
		}, false, true, false},
		"an orphan that came to the pod": {func(f fakeProc) {
			f.process(200, 100, 201, 201, "7", 2000)
			f.socket("tcp", peerHex, podHex, "7", 2000)
		}, false, true, false},
		"one that has gone":                        {func(f fakeProc) { f.process(200, 100, 200, 100, "7") }, false, true, false},
		"one whose socket nobody has open":         {func(f fakeProc) { f.process(200, 100, 200, 100, "7"); f.socket("tcp", peerHex, podHex, "7", 0) }, false, true, false},
		"one that hides, of the agent's user":      {func(f fakeProc) { f.process(200, 100, 200, 100, "7"); f.socket("tcp", peerHex, podHex, "7", 2000) }, false, true, false},
		"one that cannot be seen, of another user": {func(f fakeProc) { f.process(200, 100, 200, 100, "7"); f.socket("tcp", peerHex, podHex, "8", 2000) }, false, false, false},
		"one that may be outside of the namespace": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7")
			f.socket("tcp", peerHex, podHex, "7", 2000)
			f.below()
		}, false, false, false},
		"one that hides, in a namespace that others may be outside of": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7")
			f.write("200/fd", "") // cannot be listed
			f.socket("tcp", peerHex, podHex, "7", 2000)
			f.below()
		}, false, true, false},
		"one that hides some, in a namespace that others may be outside of": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7")
			f.write("200/fd/4", "") // cannot be read as a link
			f.socket("tcp", peerHex, podHex, "7", 2000)
			f.below()
		}, false, true, false},
		"one outside of the namespace beside one that hides, of another user": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "8")
			f.write("200/fd", "")
			f.socket("tcp", peerHex, podHex, "7", 2000)
			f.below()
		}, false, false, false},
		"the other direction of the connection": {func(f fakeProc) { // the pod's own end
			f.process(200, 100, 200, 100, "7", 2000)
			f.socket("tcp", podHex, peerHex, "7", 2000)
			f.socket("tcp", peerHex, podHex, "7", 3000)
		}, false, false, false},
		"nobody below the pod": {func(fakeProc) {}, false, false, false},
		"nobody was ever started": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7", 2000)
			f.socket("tcp", peerHex, podHex, "7", 2000)
		}, false, false, true},
		"no /proc/net": {func(f fakeProc) { f.process(200, 100, 200, 100, "7"); _ = os.RemoveAll(string(f.proc) + "/net") }, false, false, false},
		"another connection of the agent's": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7", 2000)
			f.socket("tcp", "0100007F:9C41", podHex, "7", 2000)
			f.socket("tcp", peerHex, podHex, "7", 3000)
		}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeProc(t)
			tree(f)
			c.make(f)
			p := &Peers{proc: f.proc, self: 100, quiet: func() bool { return c.quiet }, friends: map[member]struct{}{}}
			peer, local := netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("[::ffff:127.0.0.1]:8080")
			if c.six {
				peer, local = netip.MustParseAddrPort("[::1]:40000"), netip.MustParseAddrPort("[::1]:8080")
			}
			if got := p.Descends(peer, local); got != c.want {
				t.Errorf("descends: %v", got)
			}
		})
	}
}

// TestAPeerOfThisMachineIsFound asks the real system: the test binary's own connection is no descendant's, and seen from
// init, everybody's is.
func TestAPeerOfThisMachineIsFound(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	p, out := start(t, Spec{}, "obeys-term")
	out.pid(t, "up")
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = accepted.Close() }()
	peer, local := accepted.RemoteAddr().(*net.TCPAddr).AddrPort(), accepted.LocalAddr().(*net.TCPAddr).AddrPort()
	peers := NewPeers(nil)
	if peers.Descends(peer, local) {
		t.Error("our own connection is said to be a child's")
	}
	above := NewPeers(nil)
	above.self = os.Getppid()
	if !above.Descends(peer, local) {
		t.Errorf("seen from our parent %d with child %d, the connection is nobody's", above.self, p.PID())
	}
}

func TestWhatBelongsToAGroupIsFoundWhereverItWent(t *testing.T) {
	// 100 is the pod, 200 the leader of a group, 250 another one's.
	g := Group{PGID: 200, Start: 2000, SID: 100, Mark: sha256.Sum256([]byte("TOKEN=x"))}
	for name, c := range map[string]struct {
		make  func(fakeProc)
		noted []member
		want  []int
	}{
		"leader, member and descendant": {func(f fakeProc) {
			f.process(200, 100, 200, 100, "7")
			f.process(210, 1, 200, 100, "7")
			f.process(220, 200, 220, 220, "7")
			f.process(230, 220, 220, 220, "7")
			f.process(250, 100, 250, 100, "7")
		}, nil, []int{200, 210, 220, 230}},
		"members without their leader":  {func(f fakeProc) { f.process(210, 1, 200, 100, "7") }, nil, []int{210}},
		"another group with the number": {func(f fakeProc) { f.process(190, 1, 200, 100, "7"); f.process(210, 1, 200, 99, "7") }, nil, nil},
		"another leader with the number": {func(f fakeProc) {
			f.write("200/stat", "200 (x) S 1 200 100 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 2001 0 7")
			f.process(210, 200, 200, 100, "7")
		}, nil, nil},
		"one that was noted, and below it":     {func(f fakeProc) { f.process(300, 1, 300, 300, "7"); f.process(310, 300, 300, 300, "7") }, []member{{300, 3000}}, []int{300, 310}},
		"another one with a noted number":      {func(f fakeProc) { f.process(300, 1, 300, 300, "7") }, []member{{300, 2999}}, nil},
		"what a noted one left in its session": {func(f fakeProc) { f.process(320, 1, 315, 300, "7") }, []member{{300, 3000}}, []int{320}},
		"the marked among the candidates": {func(f fakeProc) {
			f.process(400, 100, 400, 400, "7")
			f.write("400/environ", "A=b\x00TOKEN=x\x00")
			f.process(410, 400, 410, 410, "7")
			f.process(420, 100, 420, 420, "7")
			f.write("420/environ", "TOKEN=y\x00")
			f.process(150, 100, 150, 150, "7") // older than the group
			f.write("150/environ", "TOKEN=x\x00")
		}, nil, []int{400, 410}},
		"the pod in a group of its child": {func(f fakeProc) { f.process(200, 100, 200, 100, "7"); f.process(100, 1, 200, 100, "7") }, nil, []int{200}},
		"one that has ended": {func(f fakeProc) {
			f.write("200/stat", "200 (x) Z 100 200 100 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 2000 0 0")
		}, nil, nil},
		"one whose first thread has ended": {func(f fakeProc) {
			f.write("200/stat", "200 (x) Z 100 200 100 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 2000 0 0")
		}, nil, []int{200}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeProc(t)
			c.make(f)
			k, err := newKin(f.proc, 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			noted := map[member]struct{}{}
			for _, m := range c.noted {
				noted[m] = struct{}{}
			}
			found := k.of(g, noted, k.orphans())
			got := slices.Sorted(maps.Keys(found))
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatWasNotedIsKeptAsLongAsSomethingBearsItsNumber(t *testing.T) {
	noted := member{300, 3000}
	for name, c := range map[string]struct {
		make func(fakeProc)
		past bool
	}{
		"it lives":                   {func(f fakeProc) { f.process(300, 1, 300, 300, "7") }, false},
		"it left one in its group":   {func(f fakeProc) { f.process(310, 1, 300, 1, "7") }, false},
		"it left one in its session": {func(f fakeProc) { f.process(310, 1, 310, 300, "7") }, false},
		"nothing is left":            {func(f fakeProc) { f.process(310, 1, 310, 310, "7") }, true},
		"another has its number":     {func(f fakeProc) { f.write("300/stat", "300 (x) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 3001 0 7") }, true},
		"another has its number and leads one": {func(f fakeProc) {
			f.write("300/stat", "300 (x) S 1 300 300 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 3001 0 7")
			f.process(310, 300, 300, 300, "7")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeProc(t)
			c.make(f)
			k, err := newKin(f.proc, 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := k.past(noted); got != c.past {
				t.Errorf("past: %v", got)
			}
		})
	}
}

func TestALookThatIsOlderThanTheEndOfAStopNotesNothing(t *testing.T) {
	f := newFakeProc(t)
	f.process(200, 100, 200, 100, "7")
	f.process(210, 200, 210, 210, "7")
	k, err := newKin(f.proc, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{group: Group{PGID: 200, Start: 2000, SID: 100}}
	if p.note(k, nil); len(p.strays.noted) != 1 {
		t.Fatalf("noted %v", p.strays.noted)
	}
	p.forget()
	if p.note(k, nil); len(p.strays.noted) != 0 {
		t.Errorf("noted %v, and nobody will take it back", p.strays.noted)
	}
}
