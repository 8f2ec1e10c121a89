package inspect

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// through is the walk through a tree that is held.
func through(root kernel.Node) Walk {
	return func(visit func(kernel.Node, int) bool) {
		var step func(n kernel.Node, depth int)
		step = func(n kernel.Node, depth int) {
			children := n.Children
			n.Children = nil
			if visit(n, depth) {
				for _, child := range children {
					step(child, depth+1)
				}
			}
		}
		step(root, 0)
	}
}

// whole is what a stream has to be, made the plain way: of a tree that is held.
func whole(n kernel.Node, f filter) (Node, bool) {
	out := shownNode(n, time.Time{})
	wanted := f.kind == "" || n.Kind == f.kind
	for _, child := range n.Children {
		if f.depth == 0 {
			out.Hidden++
			continue
		}
		if shown, ok := whole(child, filter{depth: max(f.depth-1, -1), kind: f.kind}); ok {
			out.Children = append(out.Children, shown)
			wanted = true
		}
	}
	return out, wanted
}

// grown is a random tree.
func grown(r *rand.Rand, path string, depth int) kernel.Node {
	n := kernel.Node{Path: path, Name: path[strings.LastIndexByte(path, '/')+1:], Kind: []string{"a", "b", "c"}[r.IntN(3)], Refused: map[string]int64{}, Owes: []kernel.Owed{}}
	for i := range r.IntN(4) {
		if depth < 4 {
			n.Children = append(n.Children, grown(r, fmt.Sprintf("%s/%d", path, i), depth+1))
		}
	}
	n.Kids = len(n.Children)
	return n
}

func TestAStreamedTreeIsTheTree(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	for range 2000 {
		root := grown(r, "pod", 0)
		f := filter{depth: r.IntN(6) - 1, kind: []string{"", "", "a", "b", "none"}[r.IntN(5)]}
		match, top := theRoot, root
		if len(root.Children) > 0 && r.IntN(2) == 0 {
			top = root.Children[r.IntN(len(root.Children))]
			match = at(strings.TrimPrefix(top.Path, "pod/"))
		}
		var text bytes.Buffer
		if err := through(root).write(&text, time.Time{}, f, match, []byte(`,"pod":{"n":1}`)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var got Root
		if err := json.Unmarshal(text.Bytes(), &got); err != nil {
			t.Fatalf("seed %d: %v in %s", seed, err, text.Bytes())
		}
		want, _ := whole(top, f)
		plain, err := json.Marshal(want, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		back := Node{}
		if err := json.Unmarshal(plain, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Node, back) || got.Pod["n"] != 1 {
			t.Fatalf("seed %d, %+v:\ngot  %s\nwant %s", seed, f, text.Bytes(), plain)
		}
	}
}

func TestAPathThatLeadsNowhereWritesNothing(t *testing.T) {
	root := grown(rand.New(rand.NewPCG(1, 1)), "pod", 0)
	for _, path := range []string{"pod/none", "none", "pod/none/none", ""} {
		var text bytes.Buffer
		if err := through(root).write(&text, time.Time{}, filter{depth: -1}, at(path), nil); !errors.Is(err, errNothing) || text.Len() > 0 {
			t.Errorf("%q: %v, %s", path, err, text.Bytes())
		}
	}
}

func TestASnapshotOfAVastTreeIsCutAndSaysSo(t *testing.T) {
	root := kernel.Node{Path: "pod", Kind: "pod", Kids: 3}
	for i := range 3 {
		child := kernel.Node{Path: fmt.Sprintf("pod/%d", i), Kind: "supervisor", Kids: snapshotNodes - 100}
		for j := range snapshotNodes - 100 {
			child.Children = append(child.Children, kernel.Node{Path: fmt.Sprintf("pod/%d/%d", i, j), Kind: "leaf"})
		}
		root.Children = append(root.Children, child)
	}
	var got Node
	if err := json.Unmarshal([]byte(Snapshot(through(root), time.Now())), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Children) != 3 || len(got.Children[0].Children) == 0 || got.Children[2].Hidden != snapshotNodes-100 {
		t.Errorf("%d children, the last hides %d", len(got.Children), got.Children[len(got.Children)-1].Hidden)
	}
	shown := 0
	for _, child := range got.Children {
		shown += 1 + len(child.Children)
	}
	if shown > snapshotNodes {
		t.Errorf("%d nodes are shown", shown)
	}
}
