package pod

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strings"
)

// Node is a line of /debug/tree.
type Node struct {
	Path     string           `json:"path"`
	Kind     string           `json:"kind"`
	Gen      uint64           `json:"gen"`
	State    string           `json:"state"`
	SinceMS  int64            `json:"since_ms"`
	Queue    Queue            `json:"queue"`
	Account  Account          `json:"account"`
	Doing    *Doing           `json:"doing"`
	Owes     []Owed           `json:"owes"`
	Refused  map[string]int64 `json:"refused"`
	Restarts int              `json:"restarts"`
	Attrs    map[string]any   `json:"attrs"`
	Children []Node           `json:"children"`
	Pod      *Figures         `json:"pod"` // of the root
}

// Queue is what waits in a mailbox.
type Queue struct {
	N        int64 `json:"n"`
	Bytes    int64 `json:"bytes"`
	OldestMS int64 `json:"oldest_ms"`
}

// Account is what is charged, in bytes. An actor without an account of its own shows its parent's, by the same scope.
type Account struct {
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
	Scope string `json:"scope"`
}

// Doing is the turn that runs.
type Doing struct {
	Type  string `json:"type"`
	ForMS int64  `json:"for_ms"`
}

// Owed is an obligation in the kernel's book.
type Owed struct {
	Name  string `json:"name"`
	ForMS int64  `json:"for_ms"`
}

// Figures are those of the pod as a whole.
type Figures struct {
	BytesUsed      int64 `json:"bytes_used"`
	BytesLimit     int64 `json:"bytes_limit"`
	WorstCaseBytes int64 `json:"worst_case_bytes"`
	TokensLive     int64 `json:"tokens_live"`
	CallsInFlight  int64 `json:"calls_in_flight"`
	Agents         int64 `json:"agents"`
	Connections    int64 `json:"connections"`
	Sessions       int64 `json:"sessions"`
}

// Tree is the tree now.
func (p *Pod) Tree(ctx context.Context) (*Node, error) {
	text, err := p.TreeText(ctx)
	if err != nil {
		return nil, err
	}
	return ParseTree(text)
}

// Used is what is charged now to the session with that name and to the connection of its client, in bytes: what an agent says goes over
// from the one to the other. false: there is no such session, or the tree cannot be read.
func (p *Pod) Used(ctx context.Context, session string) (bytes int64, ok bool) {
	root, err := p.Tree(ctx)
	if err != nil {
		return 0, false
	}
	return root.used(session)
}

func (n *Node) used(session string) (bytes int64, ok bool) {
	one := n.Find(session)
	if one == nil {
		return 0, false
	}
	bytes = one.Account.Used
	if name, _ := one.Attrs["client"].(string); name != "" {
		if client := n.Find(name); client != nil {
			bytes += client.Account.Used
		}
	}
	return bytes, true
}

// ParseTree reads the text of /debug/tree.
func ParseTree(text []byte) (*Node, error) {
	var root Node
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("/debug/tree: %w", err)
	}
	if root.Pod == nil {
		return nil, fmt.Errorf("/debug/tree: the root has no pod")
	}
	return &root, nil
}

// TreeText is the answer of /debug/tree as it came.
func (p *Pod) TreeText(ctx context.Context) ([]byte, error) { return p.get(ctx, "/debug/tree") }

// Name is the last part of the path.
func (n *Node) Name() string { return n.Path[strings.LastIndexByte(n.Path, '/')+1:] }

// Each visits the node and all below it.
func (n *Node) Each(visit func(*Node)) {
	visit(n)
	for i := range n.Children {
		n.Children[i].Each(visit)
	}
}

// Find is the first node with that name, nil for none.
func (n *Node) Find(name string) (found *Node) {
	n.Each(func(one *Node) {
		if found == nil && one.Name() == name {
			found = one
		}
	})
	return found
}

// Astray is how many bytes the pod has charged in all beyond what its parts account for: the accounts right below the pod's, each once
// and at the actor that owns it, and what is queued for actors that have only the pod's. Below zero, the parts have more than the whole.
// The pod reads them one after the other, so only a figure that does not move says something.
func (n *Node) Astray() int64 {
	if n.Pod == nil || n.Account.Scope == "" { // whose accounts are the same cannot be told
		return 0
	}
	return n.Pod.BytesUsed - n.parts()
}

// parts is what Astray compares with, from a node on that shows the pod's account.
func (n *Node) parts() int64 {
	sum := n.Queue.Bytes
	for i := range n.Children {
		child := &n.Children[i]
		if child.Account.Scope == n.Account.Scope {
			sum += child.parts()
		} else {
			sum += child.Account.Used
		}
	}
	return sum
}

// Unrest says what keeps the tree from being at rest as the contract defines it, or nothing: every account reads 0, nothing is owed,
// gateway and sessions have no children.
func (n *Node) Unrest() string {
	var why []string
	n.Each(func(one *Node) {
		if one.Account.Used != 0 {
			why = append(why, fmt.Sprintf("%s uses %d bytes", one.Path, one.Account.Used))
		}
		for _, owed := range one.Owes {
			why = append(why, fmt.Sprintf("%s owes %q for %d ms", one.Path, owed.Name, owed.ForMS))
		}
		if name := one.Name(); (name == "gateway" || name == "sessions") && len(one.Children) != 0 {
			why = append(why, fmt.Sprintf("%s has %d children", one.Path, len(one.Children)))
		}
	})
	if f := n.Pod; f != nil && (f.BytesUsed|f.TokensLive|f.CallsInFlight|f.Agents|f.Connections|f.Sessions) != 0 {
		why = append(why, fmt.Sprintf("pod %+v", *f))
	}
	if len(why) > 6 {
		why = append(why[:6], fmt.Sprintf("and %d more", len(why)-6))
	}
	return strings.Join(why, "; ")
}
