//go:build evaluation

package search

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"
	"time"
)

// What `.ci/search` runs: the ranking over the tools of real servers, which it fetched. The held-out half is looked at for the final figure only.
var (
	toolsFile = flag.String("tools", "", "tools by server, as testdata/search/list.mjs writes them")
	heldOut   = flag.Bool("heldout", false, "look at the held-out half, too")
	misses    = flag.Bool("misses", false, "show the queries of the tuning half that are not answered among the first five")
)

type realTool struct {
	Name, Description string
	InputSchema       json.RawMessage
}

type realServer struct {
	Server string
	Tools  []realTool
}

func readServers(t *testing.T) []realServer {
	raw, err := os.ReadFile(*toolsFile)
	if err != nil {
		t.Fatalf("tools of real servers are needed (-tools FILE, see .ci/search): %v", err)
	}
	var servers []realServer
	if err := json.Unmarshal(raw, &servers); err != nil {
		t.Fatal(err)
	}
	return servers
}

// bench is a catalog with the place of each tool in it.
type bench struct {
	entries []Entry
	places  []string
}

func (b *bench) add(s realServer, most int) {
	list := make([]Tool, len(s.Tools))
	for i, tool := range s.Tools {
		list[i] = Tool{tool.Name, tool.Description, tool.InputSchema}
	}
	index := NewIndex(list)
	for i, tool := range s.Tools[:min(most, len(s.Tools))] {
		b.entries = append(b.entries, Entry{index.Doc(i), s.Server})
		b.places = append(b.places, s.Server+"/"+tool.Name)
	}
}

const distractors = 510

func TestEvaluation(t *testing.T) {
	servers := readServers(t)
	small, large := map[string]*bench{}, map[string]*bench{}
	for name, members := range catalogs {
		s, l := &bench{}, &bench{}
		for _, server := range servers {
			if slices.Contains(members, server.Server) {
				s.add(server, 1000)
				l.add(server, 1000)
			}
		}
		if len(s.entries) != 45 {
			t.Errorf("%s has %d tools and not 45", name, len(s.entries))
		}
		for _, server := range servers {
			if !slices.Contains(members, server.Server) {
				l.add(server, max(0, len(s.entries)+distractors-len(l.entries)))
			}
		}
		if len(l.entries) != len(s.entries)+distractors {
			t.Errorf("%s: %d distractors and not %d", name, len(l.entries)-len(s.entries), distractors)
		}
		small[name], large[name] = s, l
	}
	for _, half := range []string{tuning, heldout, unseen} {
		if half != tuning && !*heldOut {
			continue
		}
		for _, size := range []string{"45 tools", "45 tools + 510"} {
			var sum figures
			by := map[string]*figures{}
			var took []time.Duration
			for _, q := range readQuestions(t) {
				if q.half != half {
					continue
				}
				b := small[q.catalog]
				if size != "45 tools" {
					b = large[q.catalog]
				}
				for _, answer := range q.answers {
					if !slices.Contains(b.places, answer) {
						t.Fatalf("%s: no server has %s", q.text, answer)
					}
				}
				begun := time.Now()
				ranked := Rank(q.text, b.entries)
				took = append(took, time.Since(begun))
				found := make([]string, len(ranked))
				for i, at := range ranked {
					found[i] = b.places[at]
				}
				one := judge(found, q.answers)
				sum.add(one)
				if by[q.catalog] == nil {
					by[q.catalog] = &figures{}
				}
				by[q.catalog].add(one)
				if *misses && half == tuning && one.at5 < 1 {
					t.Logf("%.2f %s: %q wants %v, got %v", one.at5, q.catalog, q.text, q.answers, found[:min(5, len(found))])
				}
			}
			slices.Sort(took)
			t.Logf("%-8s %-14s %v; p50 %v", half, size, sum, took[len(took)/2])
			for name, f := range by {
				t.Logf("    %-6s %v", name, *f)
			}
			if half != tuning {
				if floor := map[string]float64{"45 tools": 0.75, "45 tools + 510": 0.52}[size]; sum.at5/float64(sum.n) < floor {
					t.Errorf("recall@5, %s, %s, is below %v", half, size, floor)
				}
			}
		}
	}
}
