package inspect

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// WriteText draws a tree for a terminal: one actor a line, with what it holds, owes and has refused.
func WriteText(w io.Writer, root Root) error {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(root.Pod))
	for i, name := range names {
		if i > 0 {
			b.WriteString(" · ")
		}
		value := fmt.Sprint(root.Pod[name])
		if strings.Contains(name, "bytes") {
			value = bytesText(root.Pod[name])
		}
		fmt.Fprintf(&b, "%s %s", strings.ReplaceAll(name, "_", " "), value)
	}
	b.WriteString("\n\n")
	writeNode(&b, root.Node, "", "", "")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeNode(b *strings.Builder, n Node, scope, first, rest string) {
	fmt.Fprintf(b, "%s%s  %s gen %d %s %s", first, n.Path[strings.LastIndexByte(n.Path, '/')+1:], n.Kind, n.Gen, n.State, span(n.SinceMS))
	if n.Doing != nil {
		fmt.Fprintf(b, "  in %s for %s", n.Doing.Type, span(n.Doing.ForMS))
	}
	if n.Queue.N > 0 {
		fmt.Fprintf(b, "  queue %d, %s, oldest %s", n.Queue.N, bytesText(n.Queue.Bytes), span(n.Queue.OldestMS))
	}
	if n.Account.Scope != scope {
		fmt.Fprintf(b, "  %s of %s", bytesText(n.Account.Used), bytesText(n.Account.Limit))
	}
	for i, owed := range n.Owes {
		before := ", "
		if i == 0 {
			before = "  owes "
		}
		fmt.Fprintf(b, "%s%s (%s)", before, owed.Name, span(owed.ForMS))
	}
	for _, scope := range slices.Sorted(maps.Keys(n.Refused)) {
		fmt.Fprintf(b, "  refused %d %s", n.Refused[scope], scope)
	}
	if n.Restarts > 0 {
		fmt.Fprintf(b, "  restarts %d", n.Restarts)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Attrs)) {
		fmt.Fprintf(b, "  %s=%v", name, n.Attrs[name])
	}
	if n.Hidden > 0 {
		fmt.Fprintf(b, "  (%d more)", n.Hidden)
	}
	b.WriteByte('\n')
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			writeNode(b, child, n.Account.Scope, rest+"└─ ", rest+"   ")
		} else {
			writeNode(b, child, n.Account.Scope, rest+"├─ ", rest+"│  ")
		}
	}
}

func bytesText(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	value, unit := float64(n), -1
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value == float64(int64(value)) || value >= 100 {
		return fmt.Sprintf("%.0f%ciB", value, units[unit])
	}
	return fmt.Sprintf("%.1f%ciB", value, units[unit])
}

func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}
