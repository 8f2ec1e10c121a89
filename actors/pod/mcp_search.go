package pod

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// found is what a search answers, as far as it is shown to people.
type found struct {
	Capabilities []struct {
		Name         string `json:"name"`
		Description  string `json:"description"`
		Provider     string `json:"provider"`
		Risk         string `json:"risk"`
		Availability string `json:"availability"`
	} `json:"capabilities"`
	Unavailable []capability.Unavailable `json:"unavailable"`
	Pending     []string                 `json:"pending"`
	Next        string                   `json:"next_cursor"`
	Total       int                      `json:"total"`
}

// SearchServers searches as an agent does, and writes out what an agent gets: with asJSON to the byte.
func SearchServers(ctx context.Context, o Options, words string, limit int, asJSON bool, out, notes io.Writer) error {
	return operate(ctx, o, notes, func(ctx context.Context, op *operator) error {
		text, err := op.searchText(ctx, capability.Query{Text: words, Limit: limit})
		if err != nil {
			return err
		}
		if asJSON {
			_, err = out.Write(append(text, '\n'))
			return err
		}
		var f found
		if err := json.Unmarshal(text, &f, json.MatchCaseInsensitiveNames(true)); err != nil {
			return err
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, c := range f.Capabilities {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, c.Risk, c.Availability, firstLine(c.Description))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if rest := f.Total - len(f.Capabilities); rest > 0 {
			_, _ = fmt.Fprintf(notes, "%d more; ask for them with --limit, or with more words\n", rest)
		}
		if f.Total == 0 {
			_, _ = fmt.Fprintln(notes, "nothing was found")
		}
		for _, u := range f.Unavailable {
			_, _ = fmt.Fprintf(notes, "unavailable: %s\n", u.Error)
		}
		for _, name := range f.Pending {
			_, _ = fmt.Fprintf(notes, "pending: %s\n", name)
		}
		return nil
	})
}

// firstLine is how a description begins, for one line of a table.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return kernel.Escape(s, 100)
}
