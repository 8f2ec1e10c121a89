package inspect

import (
	"encoding/json/v2"
	"errors"
	"io"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Walk visits the nodes of a tree, each before those below it; see kernel.Kernel.Walk.
type Walk func(visit func(n kernel.Node, depth int) (down bool))

// shallow is the root with its children, and nothing below them but how many there are.
func (w Walk) shallow() (root kernel.Node) {
	w(func(n kernel.Node, depth int) bool {
		if depth == 0 {
			root = n
			return true
		}
		root.Children = append(root.Children, n)
		return false
	})
	return root
}

// filter says what of a tree is wanted.
type filter struct {
	depth int    // levels below the first node; -1 = all
	kind  string // only nodes of this kind, and what leads to them; "" = all
	most  int    // nodes; 0 = all. What is beyond is counted as hidden
}

// stream writes nodes as JSON while they are visited, so that a tree of 20,000 sessions takes the memory of a few nodes. What was
// not wanted so far but may lead to something that is waits in pending, which is as deep as the tree.
type stream struct {
	w       io.Writer
	now     time.Time
	f       filter
	top     int // depth of the first node, in the walk
	pending []Node
	open    []bool // of the nodes that are open, from the first: whether a child was written
	written int
	err     error
}

var errNothing = errors.New("no node")

// write streams the node that match finds, with what is below it as the filter says. tail, when not nil, is written before the first node's
// closing brace. errNothing: match found none.
func (w Walk) write(out io.Writer, now time.Time, f filter, match func(n kernel.Node, depth int) (found, onTheWay bool), tail []byte) error {
	s := &stream{w: out, now: now, f: f, top: -1, err: errNothing}
	over := false
	w(func(n kernel.Node, depth int) bool {
		if over || s.top >= 0 && s.err != nil {
			return false
		}
		if s.top < 0 {
			found, way := match(n, depth)
			if !found {
				return way
			}
			s.top, s.err = depth, nil
		} else if depth <= s.top {
			over = true
			return false
		}
		return s.visit(n, depth-s.top)
	})
	if s.top < 0 || s.err != nil {
		return s.err
	}
	s.close(1)
	s.put([]byte("]"))
	s.put(tail)
	s.put([]byte("}"))
	return s.err
}

// visit takes the next node, at a level below the first one.
func (s *stream) visit(n kernel.Node, level int) (down bool) {
	shown := shownNode(n, s.now)
	down = (s.f.depth < 0 || level < s.f.depth) && (s.f.most == 0 || s.written+n.Kids <= s.f.most)
	if !down {
		shown.Hidden = n.Kids
	}
	s.close(level)
	s.pending = append(s.pending[:min(len(s.pending), level-len(s.open))], shown)
	if level > 0 && s.f.kind != "" && n.Kind != s.f.kind {
		return down
	}
	for _, p := range s.pending {
		s.begin(p)
	}
	s.pending = s.pending[:0]
	return down && s.err == nil
}

// begin writes a node up to its first child.
func (s *stream) begin(n Node) {
	text, err := json.Marshal(n, json.Deterministic(true), jsonTolerant)
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	if last := len(s.open) - 1; last >= 0 {
		if s.open[last] {
			s.put([]byte(","))
		}
		s.open[last] = true
	}
	s.put(text[:len(text)-len("]}")]) // it ends with `"children":[]}`
	s.open = append(s.open, false)
	s.written++
}

// close ends the nodes that are open at a level and below it.
func (s *stream) close(level int) {
	for len(s.open) > level {
		s.put([]byte("]}"))
		s.open = s.open[:len(s.open)-1]
	}
}

func (s *stream) put(b []byte) {
	if s.err == nil && len(b) > 0 {
		_, s.err = s.w.Write(b)
	}
}
