package process

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Peers tells whether a connection of this machine comes from a process below this one, wherever it hides: orphans come to
// this process, which is a subreaper. Methods are safe from any goroutine.
type Peers struct {
	proc     proc
	self     int
	guardian *Guardian
	quiet    func() bool

	mu   sync.Mutex
	next *round // takes questions until its look begins

	working sync.Mutex // held by the one look at a time; it guards friends too
	friends map[member]struct{}
}

// maxFriends is how many processes that a client was found in are looked at first.
const maxFriends = 16

// maxLooks is how often descendants are looked at for a socket that nobody seems to hold.
const maxLooks = 4

// NewPeers looks into the system's processes. The guardian is not one of the children that are meant.
func NewPeers(guardian *Guardian) *Peers {
	return &Peers{proc: system, self: os.Getpid(), guardian: guardian, quiet: ours.isQuiet, friends: map[member]struct{}{}}
}

// round are the questions that one look answers.
type round struct {
	questions []*question
	done      chan struct{}
}

type question struct {
	peer, local netip.AddrPort
	descends    bool
}

// Descends judges the accepted connection from peer to local, both on this machine. It costs nothing while this process has
// no child beside the guardian; else a look at the processes (milliseconds), which those who ask meanwhile wait for and share
// the next of.
//
// The socket is looked up by its addresses, and its number in the descriptors of all descendants. When none of them has
// it, it must be in another process that can be seen, or be of a user that no descendant is: a process could pass it on,
// or hide its descriptors. In a pid namespace below the first it may be held outside of that, so there only a socket of the user of a
// descendant that does hide them counts as one. Where /proc cannot be read the answer is no.
func (p *Peers) Descends(peer, local netip.AddrPort) bool {
	if p.quiet() {
		return false
	}
	q := &question{peer: plainAddr(peer), local: plainAddr(local)}
	p.mu.Lock()
	r := p.next
	first := r == nil
	if first {
		r = &round{done: make(chan struct{})}
		p.next = r
	}
	r.questions = append(r.questions, q)
	p.mu.Unlock()
	if first {
		p.answer(r)
	}
	<-r.done
	return q.descends
}

func plainAddr(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// answer waits for its turn; until then others may join.
func (p *Peers) answer(r *round) {
	p.working.Lock()
	defer p.working.Unlock()
	p.mu.Lock()
	p.next = nil
	p.mu.Unlock()
	defer close(r.done)
	p.judge(r.questions)
}

func (p *Peers) judge(questions []*question) {
	t, err := p.proc.table()
	if err != nil {
		return
	}
	below := p.descendants(t)
	if len(below) == 0 {
		return
	}
	sockets, err := p.proc.sockets(questions)
	if err != nil {
		return
	}
	open := map[uint64]*question{} // by inode
	for _, q := range questions {
		s, there := sockets[q]
		if q.descends = !there || s.inode == 0; !q.descends { // it has gone already: nobody waits for an answer
			open[s.inode] = q
		}
	}
	for range maxLooks {
		p.among(below, open, func(_ int, q *question) { q.descends = true })
		if len(open) == 0 {
			return
		}
		if p.elsewhere(t, below, open); len(open) == 0 {
			return
		}
		if t, err = p.proc.table(); err != nil {
			return
		}
		below = p.descendants(t)
	}
	users, hiding := p.users(below), p.users(p.hiding(below))
	for _, q := range open {
		_, same := users[sockets[q].uid]
		_, may := hiding[sockets[q].uid]
		q.descends = may || same && p.proc.seesAll()
	}
}

// descendants are those below this process without the guardian.
func (p *Peers) descendants(t table) map[int]stat {
	below := t.below(p.self)
	if pid, _ := p.guardian.Status(); pid > 0 {
		delete(below, pid)
	}
	for m := range ours.others() { // of who was here before the pod
		if s, there := below[m.pid]; there && s.start == m.start {
			delete(below, m.pid)
			for pid := range t.below(m.pid) {
				delete(below, pid)
			}
		}
	}
	return below
}

// among takes the questions out whose socket one of the processes holds.
func (p *Peers) among(pids map[int]stat, open map[uint64]*question, found func(pid int, q *question)) {
	for pid := range pids {
		inodes, _ := p.proc.held(pid)
		for _, inode := range inodes {
			if q, asked := open[inode]; asked {
				found(pid, q)
				delete(open, inode)
			}
		}
		if len(open) == 0 {
			return
		}
	}
}

// elsewhere takes the questions out whose socket a process holds that is no descendant: first where clients were before.
func (p *Peers) elsewhere(t table, below map[int]stat, open map[uint64]*question) {
	friends, others := map[int]stat{}, map[int]stat{}
	for pid, s := range t {
		if _, ours := below[pid]; ours || s.dead() {
			continue
		}
		if _, friend := p.friends[member{pid, s.start}]; friend {
			friends[pid] = s
		} else {
			others[pid] = s
		}
	}
	p.among(friends, open, func(int, *question) {})
	if len(open) == 0 {
		return
	}
	p.among(others, open, func(pid int, _ *question) {
		if len(p.friends) >= maxFriends {
			clear(p.friends)
		}
		p.friends[member{pid, t[pid].start}] = struct{}{}
	})
}

// users are all that the processes run as: real, effective, saved and of the file system.
func (p *Peers) users(pids map[int]stat) map[string]struct{} {
	users := map[string]struct{}{}
	for pid := range pids {
		text, _ := os.ReadFile(p.proc.of(pid, "status"))
		for line := range strings.Lines(string(text)) {
			if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
				for _, id := range strings.Fields(ids) {
					users[id] = struct{}{}
				}
			}
		}
	}
	return users
}

// seesAll tells whether this is the first pid namespace, outside of which there is no process.
func (p proc) seesAll() bool {
	const first = "pid:[4026531836]" // a constant of the kernel
	namespace, err := os.Readlink(string(p) + "/self/ns/pid")
	return err == nil && namespace == first
}

// hiding are those whose descriptors may not be read, or not all.
func (p *Peers) hiding(pids map[int]stat) map[int]stat {
	found := map[int]stat{}
	for pid, s := range pids {
		if _, hides := p.proc.held(pid); hides {
			found[pid] = s
		}
	}
	return found
}

// held are the inodes of the sockets that a process has open. hides: it lives, and its descriptors may not all be read.
func (p proc) held(pid int) (inodes []uint64, hides bool) {
	dir, err := os.Open(p.of(pid, "fd"))
	if err != nil {
		return nil, !ended(err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	hides = err != nil && !ended(err)
	for _, name := range names {
		target, err := os.Readlink(p.of(pid, "fd/"+name))
		if err != nil {
			hides = hides || !ended(err)
			continue
		}
		if rest, ok := strings.CutPrefix(target, "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 64); err == nil {
				inodes = append(inodes, inode)
			}
		}
	}
	return inodes, hides
}

// ended tells that what was to be read of a process has gone, or the process.
func ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// socket is what the system says of one.
type socket struct {
	inode uint64 // 0 = no process has it open any more
	uid   string
}

// sockets finds the peers' ends of the connections.
func (p proc) sockets(questions []*question) (map[*question]socket, error) {
	wanted := map[string]*question{}
	for _, q := range questions {
		wanted[hexAddr(q.peer, false)+" "+hexAddr(q.local, false)] = q
		if q.peer.Addr().Is4() { // a socket of IPv6 can speak IPv4
			wanted[hexAddr(q.peer, true)+" "+hexAddr(q.local, true)] = q
		}
	}
	found := map[*question]socket{}
	var failed error
	for i, name := range []string{"/net/tcp", "/net/tcp6"} {
		f, err := os.Open(string(p) + name)
		if err != nil {
			if i == 0 { // there may be no IPv6
				failed = err
			}
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if q, s, ok := match(lines.Bytes(), wanted); ok {
				found[q] = s
			}
		}
		_ = f.Close()
	}
	return found, failed
}

// match reads one line of /proc/net/tcp: number, local address, remote address, state, queues, timer, retransmits, uid,
// timeout, inode.
func match(line []byte, wanted map[string]*question) (*question, socket, bool) {
	_, rest, ok := bytes.Cut(line, []byte(": "))
	end := bytes.IndexByte(rest, ' ')
	if !ok || end < 0 || len(rest) < 2*end+1 {
		return nil, socket{}, false
	}
	q, ok := wanted[string(rest[:2*end+1])]
	if !ok {
		return nil, socket{}, false
	}
	fields := strings.Fields(string(rest[2*end+1:]))
	if len(fields) < 7 {
		return nil, socket{}, false
	}
	inode, err := strconv.ParseUint(fields[6], 10, 64)
	return q, socket{inode: inode, uid: fields[4]}, err == nil
}

// hexAddr is an address as /proc/net/tcp, or with wide /proc/net/tcp6, writes it: words of four bytes as numbers of this machine.
func hexAddr(a netip.AddrPort, wide bool) string {
	raw := a.Addr().AsSlice()
	if wide {
		long := a.Addr().As16()
		raw = long[:]
	}
	var b strings.Builder
	for ; len(raw) >= 4; raw = raw[4:] {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(raw))
	}
	fmt.Fprintf(&b, ":%04X", a.Port())
	return b.String()
}
