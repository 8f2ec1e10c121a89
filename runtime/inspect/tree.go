package inspect

import (
	"encoding/json/v2"
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

// filter says what of a tree is wanted.
type filter struct {
	depth int    // levels below the first node; -1 = all
	kind  string // only nodes of this kind, and what leads to them; "" = all
}

// view turns a snapshot into what is shown. The second value is false when nothing in it is of the wanted kind.
func view(n kernel.Node, now time.Time, f filter) (Node, bool) {
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
	wanted := f.kind == "" || n.Kind == f.kind
	for _, child := range n.Children {
		if f.depth == 0 {
			out.Hidden++
			continue
		}
		if shown, ok := view(child, now, filter{max(f.depth-1, -1), f.kind}); ok {
			out.Children = append(out.Children, shown)
			wanted = true
		}
	}
	return out, wanted
}

func passed(now, since time.Time) int64 {
	if since.IsZero() || now.Before(since) {
		return 0
	}
	return now.Sub(since).Milliseconds()
}

// find looks for a node by its path, with or without the root's own name before it.
func find(root kernel.Node, path string) (kernel.Node, bool) {
	path = strings.Trim(path, "/")
	if path == root.Name {
		return root, true
	}
	node := root
	for name := range strings.SplitSeq(strings.TrimPrefix(path, root.Name+"/"), "/") {
		found := false
		for _, child := range node.Children {
			if child.Name == name {
				node, found = child, true
				break
			}
		}
		if !found {
			return kernel.Node{}, false
		}
	}
	return node, true
}

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
	root, now := i.opts.Tree(), i.opts.Now()
	if path := r.PathValue("path"); path != "" {
		node, ok := find(root, path)
		if !ok {
			fail(w, http.StatusNotFound, "no actor with this path; /debug/tree lists all")
			return
		}
		shown, _ := view(node, now, f)
		answer(w, http.StatusOK, shown)
		return
	}
	shown, _ := view(root, now, f)
	answer(w, http.StatusOK, Root{Node: shown, Pod: i.pod(root)})
}

// Snapshot is a whole tree as one line of JSON, for a log.
func Snapshot(root kernel.Node, now time.Time) string {
	shown, _ := view(root, now, filter{depth: -1})
	text, err := json.Marshal(shown, json.Deterministic(true), jsonTolerant)
	if err != nil {
		return "cannot be shown: " + err.Error()
	}
	return string(text)
}

func (i *Inspector) pod(root kernel.Node) map[string]int64 {
	out := map[string]int64{}
	for _, figure := range i.opts.Figures(root) {
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
