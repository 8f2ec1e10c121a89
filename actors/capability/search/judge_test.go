package search

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// figures sums up how well queries are answered: recall among the first k, and
// the reciprocal rank of the first answer.
type figures struct {
	n                   int
	at1, at3, at5, at10 float64
	mrr                 float64
}

func (f *figures) add(o figures) {
	f.n += o.n
	f.at1 += o.at1
	f.at3 += o.at3
	f.at5 += o.at5
	f.at10 += o.at10
	f.mrr += o.mrr
}

func (f figures) String() string {
	n := float64(max(f.n, 1))
	return fmt.Sprintf("%3d queries: R@1 %.3f R@3 %.3f R@5 %.3f R@10 %.3f MRR %.3f", f.n, f.at1/n, f.at3/n, f.at5/n, f.at10/n, f.mrr/n)
}

// judge gives the figures of one query.
func judge(found, answers []string) figures {
	recall := func(k int) float64 {
		n := 0
		for _, answer := range answers {
			if slices.Contains(found[:min(k, len(found))], answer) {
				n++
			}
		}
		return float64(n) / float64(len(answers))
	}
	f := figures{n: 1, at1: recall(1), at3: recall(3), at5: recall(5), at10: recall(10)}
	for i, name := range found {
		if slices.Contains(answers, name) {
			f.mrr = 1 / float64(i+1)
			break
		}
	}
	return f
}

// question is one line of a file of them.
type question struct {
	catalog, text string
	answers       []string
	half          string
}

// The halves of queries.tsv, and unseen.tsv, all of which is held out.
const (
	tuning  = "tuning"
	heldout = "held out"
	unseen  = "unseen"
)

// catalogs are the servers whose tools are 45 together.
var catalogs = map[string][]string{
	"desk":  {"filesystem", "memory", "thinking", "everything", "maps", "postgres"},
	"web":   {"playwright", "slack", "brave", "context7", "maps", "postgres"},
	"code":  {"git", "gitlab", "slack"},
	"hub":   {"github", "memory", "maps", "brave", "postgres"},
	"notes": {"notion", "filesystem", "maps"},
	"debug": {"devtools", "everything"},

	"shell":   {"desktop", "airtable", "fetcher"},
	"cluster": {"kubernetes", "weather", "airtable"},
	"data":    {"mongodb", "airtable", "figma"},
	"phone":   {"mobile", "fetch", "time", "postgres"},
}

func readQuestions(t *testing.T) []question {
	t.Helper()
	var list []question
	count := map[string]int{}
	for _, name := range []string{"queries.tsv", unseen + ".tsv"} {
		raw, err := os.ReadFile("../../../testdata/search/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			parts := strings.Split(strings.TrimSpace(line), "\t")
			if len(parts) != 3 || catalogs[parts[0]] == nil {
				t.Fatalf("%s: no question: %q", name, line)
			}
			q := question{parts[0], parts[1], strings.Split(parts[2], ","), unseen}
			if count[q.catalog]++; name == "queries.tsv" {
				q.half = []string{heldout, tuning}[count[q.catalog]%2]
			}
			list = append(list, q)
		}
	}
	return list
}
