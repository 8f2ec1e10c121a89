package search

import "strings"

// names rewards entries whose name is the query, is mentioned in it, or contains it, however either is spelt.
func (r *ranking) names(q asked) {
	for i, e := range r.entries {
		if e.Doc.index == nil {
			continue
		}
		d, server := e.Doc.doc(), r.servers[r.server[i]].joined
		if q.joined != "" && named(q.joined, server, d.joined) {
			r.scores[i] += isName
		}
		for _, piece := range q.pieces {
			if named(piece, server, d.joined) {
				r.scores[i] += mentionsName
				break
			}
		}
		if strings.Contains(d.lower, q.lower) || len(q.joined) >= minStarved && strings.Contains(d.joined, q.joined) {
			r.scores[i] += containsQuery
		}
	}
}

// named reports that s is the tool's name, or that of its server and it.
func named(s, server, tool string) bool {
	rest, qualified := strings.CutSuffix(s, tool)
	return qualified && tool != "" && (rest == "" || rest == server)
}
