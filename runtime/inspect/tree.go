package inspect

import (
	"bufio"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Node is one actor as the JSON shows it. All times are milliseconds that have passed.
type Node struct {
	Path     string           `json:"path"`
	Kind     string           `json:"kind"`
	Gen      uint64           `json:"gen"`
	State    string           `json:"state"`
	SinceMS  int64            `json:"since_ms"`
	Queue    Queue            `json:"queue"`
	Account  Account          `json:"account"`
	Doing    *Doing           `json:"doing,omitzero"`
	Owes     []Owed           `json:"owes"`
	Refused  map[string]int64 `json:"refused"`
	Restarts int              `json:"restarts"`
	Attrs    map[string]any   `json:"attrs,omitempty"`
	Hidden   int              `json:"hidden,omitzero"` // children left out because of depth
	Children []Node           `json:"children"`
}

// Queue is an actor's mailbox.
type Queue struct {
	N        int   `json:"n"`
	Bytes    int64 `json:"bytes"`
	OldestMS int64 `json:"oldest_ms"`
}

// Account is what an actor is charged to.
type Account struct {
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
	Scope string `json:"scope,omitempty"`
}

// Doing is the turn that is running.
type Doing struct {
	Type  string `json:"type"`
	ForMS int64  `json:"for_ms"`
}

// Owed is one obligation in the kernel's book.
type Owed struct {
	Name  string `json:"name"`
	ForMS int64  `json:"for_ms"`
}

// Root is what /debug/tree answers: the root node and the pod's figures.
type Root struct {
	Node
	Pod map[string]int64 `json:"pod"`
}

// shownNode is a node without what is below it.
func shownNode(n kernel.Node, now time.Time) Node {
	out := Node{
		Path: n.Path, Kind: n.Kind, Gen: n.Gen, State: n.State, SinceMS: passed(now, n.Since),
		Queue:   Queue{N: n.Queue.N, Bytes: n.Queue.Bytes, OldestMS: passed(now, n.Queue.Oldest)},
		Account: Account{Used: n.Account.Used, Limit: n.Account.Limit, Scope: n.Account.Scope},
		Refused: n.Refused, Restarts: n.Restarts, Attrs: n.Attrs,
	}
	if n.Doing != nil {
		out.Doing = &Doing{Type: n.Doing.Type, ForMS: passed(now, n.Doing.Since)}
	}
	for _, owed := range n.Owes {
		out.Owes = append(out.Owes, Owed{Name: owed.Name, ForMS: passed(now, owed.Since)})
	}
	return out
}

func passed(now, since time.Time) int64 {
	if since.IsZero() || now.Before(since) {
		return 0
	}
	return now.Sub(since).Milliseconds()
}

// at finds a node by its path, with or without the root's own name before it.
func at(path string) func(n kernel.Node, depth int) (found, onTheWay bool) {
	path = strings.Trim(path, "/")
	return func(n kernel.Node, depth int) (found, onTheWay bool) {
		if depth == 0 && path != n.Path && !strings.HasPrefix(path, n.Path+"/") {
			path = n.Path + "/" + path
		}
		return n.Path == path, strings.HasPrefix(path, n.Path+"/")
	}
}

// theRoot is found first.
func theRoot(kernel.Node, int) (found, onTheWay bool) { return true, false }

// treesAtOnce bounds the trees that are being written: each holds its place in the tree and a few buffers. One more waits.
const treesAtOnce = 4

func (i *Inspector) serveTree(w http.ResponseWriter, r *http.Request) {
	f := filter{depth: -1, kind: r.URL.Query().Get("kind")}
	if text := r.URL.Query().Get("depth"); text != "" {
		depth, err := strconv.Atoi(text)
		if err != nil || depth < 0 {
			fail(w, http.StatusBadRequest, "depth is a whole number from 0")
			return
		}
		f.depth = depth
	}
	select {
	case i.trees <- struct{}{}:
		defer func() { <-i.trees }()
	case <-r.Context().Done():
		return
	}
	match, tail := theRoot, []byte(nil)
	if path := r.PathValue("path"); path != "" {
		match = at(path)
	} else {
		pod, err := json.Marshal(i.pod(), json.Deterministic(true))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		tail = append([]byte(`,"pod":`), pod...)
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 16<<10)
	err := i.opts.Walk.write(out, i.opts.Now(), f, match, tail)
	switch {
	case errors.Is(err, errNothing):
		fail(w, http.StatusNotFound, "no actor with this path; /debug/tree lists all")
	case err == nil:
		_ = out.WriteByte('\n')
		_ = out.Flush()
	}
}

// snapshotNodes is how many actors stand in a snapshot at most: it becomes one line of a log.
const snapshotNodes = 2000

// Snapshot is a tree as one line of JSON, for a log. Of a large one the first nodes stand there, and the others are counted as hidden.
func Snapshot(walk Walk, now time.Time) string {
	var text strings.Builder
	if err := walk.write(&text, now, filter{depth: -1, most: snapshotNodes}, theRoot, nil); err != nil {
		return "cannot be shown: " + err.Error()
	}
	return text.String()
}

func (i *Inspector) pod() map[string]int64 {
	out := map[string]int64{}
	for _, figure := range i.opts.Figures(i.opts.Walk.shallow()) {
		out[figure.Name] = figure.Value
	}
	return out
}

func answer(w http.ResponseWriter, status int, v any) {
	// What a peer chose is escaped by the kernel already; a lone surrogate or worse must still not cost the whole answer.
	text, err := json.Marshal(v, json.Deterministic(true), jsonTolerant)
	if err != nil {
		http.Error(w, fmt.Sprintf("the tree does not fit into JSON: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

func fail(w http.ResponseWriter, status int, what string) {
	answer(w, status, map[string]string{"error": what})
}
