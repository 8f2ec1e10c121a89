package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// pageSize is how many sessions one page of session/list has, listBound how many of one client's, the last changed, are looked at, and lists how
// many look at once.
const (
	pageSize  = 100
	listBound = 1000
	lists     = 4
)

// doze is what is remembered of a session that sleeps and whose client gave no secret: the store does not list it, and the connections that had
// it may.
type doze struct {
	owner   owner
	cwd     string
	created time.Time
	updated time.Time
	ranks   []uint64
}

// maxDozing bounds how many; those that were changed longest ago go first.
const maxDozing = 4096

func (v *supervisor) doze(rec *record) {
	if rec.owner.secret != [32]byte{} || len(rec.ranks) == 0 {
		return
	}
	v.dozing[rec.id] = doze{owner: rec.owner, cwd: rec.cwd, created: rec.created, updated: rec.updated, ranks: rec.ranks}
	if len(v.dozing) <= maxDozing {
		return
	}
	oldest := ""
	for id, d := range v.dozing {
		if oldest == "" || d.updated.Before(v.dozing[oldest].updated) {
			oldest = id
		}
	}
	delete(v.dozing, oldest)
}

// listing is one session of a list.
type listing struct {
	id      string
	cwd     string
	created time.Time
	updated time.Time
}

// before is the order of a list, the newest first.
func (l listing) before(o listing) int {
	if by := o.created.Compare(l.created); by != 0 {
		return by
	}
	return cmp.Compare(o.id, l.id)
}

// listed is what the store knows of a client's sessions.
type listed struct {
	late     func() // takes the look at one that waits too long back
	locating bool   // its folder is being looked for
	client   Client
	req      uint64
	owed     *kernel.Obligation
	cwd      string // "" = of every folder
	real     string // the folder that it stands for in session/new; cwd where there is none
	after    *listing
	found    []listing
	err      error
}

// onList is session/list: the sessions that this connection opened or resumed, and those of the same client secret.
func (v *supervisor) onList(m List) {
	defer m.Held.Release()
	cwd, after, bad := parseList(m.Params)
	if bad != nil {
		m.Client.Respond("", m.Req, nil, nil, bad)
		return
	}
	l := &listed{client: m.Client, req: m.Req, cwd: strings.Clone(cwd), after: after}
	l.real, l.owed = l.cwd, v.c.Own("answer", releaseAnswer("", m.Client, m.Req))
	l.late = v.c.After(keepWait, listOverdue{l})
	if cwd != "" && v.hungFolders < maxHung {
		v.locate(l)
		return
	}
	v.look(l)
}

// located is a listed whose folder was looked for.
type located struct{ *listed }

// locate finds the folder that session/new would have opened a session in, off the turn. Each list does it beside all others: a folder that
// hangs keeps nobody else waiting.
func (v *supervisor) locate(l *listed) {
	l.locating = true
	workdir, resolve := v.s.cfg.Workdir, v.s.folders
	v.c.Go("folders", func(context.Context) kernel.Msg {
		if folders, bad := resolve(workdir, &Params{SessionParams: acp.SessionParams{Cwd: l.cwd}}); bad == nil {
			l.real = folders.Cwd
		} // else it is gone, and its sessions may not be
		return located{l}
	})
}

func (v *supervisor) onLocated(l *listed) {
	l.locating = false
	if !l.owed.Owed() { // it was answered
		v.hungFolders--
		return
	}
	v.look(l)
}

// look asks the store, where it may know something.
func (v *supervisor) look(l *listed) {
	if l.client.Secret() != [32]byte{} {
		v.lists = append(v.lists, l)
		v.list()
		return
	}
	if l.owed.Discharge() { // nobody knows it again
		l.late()
		v.answerList(l)
	}
}

// list has the store look, for a few at a time: what it finds is only let go of when it was looked through.
func (v *supervisor) list() {
	store := v.s.cfg.Store
	for len(v.lists) > 0 && v.looking < lists {
		l := v.lists[0]
		v.lists = v.lists[1:]
		v.looking++
		v.c.Go("list", func(ctx context.Context) kernel.Msg {
			ctx, cancel := context.WithTimeout(ctx, storeWait)
			defer cancel()
			var found []Durable
			found, l.err = store.List(ctx, l.client.Key(), l.client.Secret(), listBound)
			for i := range found {
				d := &found[i]
				l.found = append(l.found, listing{d.ID, d.Cwd, d.Created, d.Updated})
			}
			return l
		})
	}
}

func (v *supervisor) onListed(m *listed) {
	v.looking--
	v.list()
	if !m.owed.Discharge() {
		return
	}
	m.late()
	if m.err != nil {
		v.c.Refuse("session_records")
		v.c.Log().Error("the list of sessions", "err", m.err.Error())
		m.client.Respond("", m.req, nil, nil, jsonrpc.InternalError(jsonrpc.ReasonInternal, "the records of sessions cannot be read now: the pod's log says why"))
		return
	}
	v.answerList(m)
}

// answerList puts together what lives, what the store has, and what the connection had.
func (v *supervisor) answerList(m *listed) {
	var mine []listing
	add := func(l listing) {
		if (m.cwd == "" || m.cwd == l.cwd || m.real == l.cwd) && (m.after == nil || m.after.before(l) < 0) {
			mine = append(mine, l)
		}
	}
	for _, rec := range v.records {
		if rec.listedFor(m.client) {
			add(listing{rec.id, rec.cwd, rec.created, rec.updated})
		}
	}
	for _, l := range m.found {
		if rec := v.records[l.id]; rec == nil || rec.unread { // else it lives, or goes, and is listed above or not at all
			add(l)
		}
	}
	for id, d := range v.dozing {
		if v.records[id] == nil && d.owner.admits(m.client.Key(), m.client.Secret()) && slices.Contains(d.ranks, m.client.Rank()) {
			add(listing{id, d.cwd, d.created, d.updated})
		}
	}
	slices.SortFunc(mine, listing.before)
	m.client.Respond("", m.req, listResult(mine), nil, nil)
}

// listedFor tells whether the session may be named to that client. One that is not yet open has no id that anybody knows.
func (r *record) listedFor(client Client) bool {
	if r.unread || r.closed() || r.kept.then == deleted || r.life != nil && !r.life.opened.Load() && (r.first == nil || !r.first.back()) ||
		r.life == nil && r.under != nil && !r.under.back() {
		return false
	}
	if !r.owner.admits(client.Key(), client.Secret()) {
		return false
	}
	return r.owner.secret != [32]byte{} || slices.Contains(r.ranks, client.Rank()) || r.status().client == client
}

func parseList(params []byte) (cwd string, after *listing, bad *jsonrpc.Error) {
	if params == nil || jsonrpc.IsNull(params) {
		return "", nil, nil
	}
	o, err := jsonrpc.ParseObject(params)
	if err == nil {
		err = o.Unique("cwd", "cursor")
	}
	if err != nil {
		return "", nil, jsonrpc.BadParams("params of session/list: %v", err)
	}
	text := func(name string) string {
		raw, ok := o.Get(name)
		if !ok || jsonrpc.IsNull(raw) {
			return ""
		}
		s, isText := jsonrpc.String(raw)
		if !isText && bad == nil {
			bad = jsonrpc.BadParams("%s must be a string", name)
		}
		return s
	}
	cwd = text("cwd")
	if at := text("cursor"); at != "" && bad == nil {
		var ok bool
		if after, ok = parseCursor(at); !ok {
			bad = jsonrpc.BadParams("cursor is not one that this pod gave")
		}
	}
	return cwd, after, bad
}

// cursor names the place of a session in the list, whether it is still there or not.
func (l listing) cursor() string {
	return strconv.FormatInt(l.created.UnixNano(), 16) + "-" + hex.EncodeToString([]byte(l.id))
}

func parseCursor(text string) (*listing, bool) {
	at, id, ok := strings.Cut(text, "-")
	nanos, err := strconv.ParseInt(at, 16, 64)
	name, bad := hex.DecodeString(id)
	if !ok || err != nil || bad != nil || !ValidID(string(name)) {
		return nil, false
	}
	return &listing{id: string(name), created: time.Unix(0, nanos)}, true
}

func listResult(mine []listing) []byte {
	var b bytes.Buffer
	b.WriteString(`{"sessions":[`)
	for i, l := range mine[:min(len(mine), pageSize)] {
		if i > 0 {
			b.WriteByte(',')
		}
		one := jsonrpc.AppendString([]byte(`{"sessionId":`), l.id)
		one = jsonrpc.AppendString(append(one, `,"cwd":`...), l.cwd)
		one = jsonrpc.AppendString(append(one, `,"updatedAt":`...), l.updated.UTC().Format(time.RFC3339))
		b.Write(append(one, '}'))
	}
	b.WriteByte(']')
	if len(mine) > pageSize {
		b.Write(jsonrpc.AppendString([]byte(`,"nextCursor":`), mine[pageSize-1].cursor()))
	}
	b.WriteByte('}')
	return b.Bytes()
}
