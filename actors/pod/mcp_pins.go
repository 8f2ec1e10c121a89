package pod

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/acpod/acpod/actors/capability/pins"
	"github.com/acpod/acpod/runtime/kernel"
)

// PinsOptions say what an operator does with pins.
type PinsOptions struct {
	Accept string // SERVER or SERVER.TOOL; "" = nothing
	Forget string // the same
	Client string // of which client, by the first characters of its scope; "" = whoever has it
	Trust  bool   // after pins were lost: what is there now is accepted
	JSON   bool
	Out    io.Writer
}

// OperatePins shows the pins of the state folder or changes one. No pod has to run; one that runs notices within a second.
func OperatePins(o Options, p PinsOptions) error {
	dir := stateDir(o.Config.State, o.Environ)
	if dir == "" {
		return errors.New("there is no state folder: neither HOME nor XDG_STATE_HOME is set; set state.dir")
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return p.nothingYet()
	}
	switch {
	case p.Trust:
		return pins.Trust(dir)
	case p.Accept != "":
		done, err := acceptPins(dir, choiceOf(p.Accept, p.Client))
		return p.tell("accepted", done, err)
	case p.Forget != "":
		done, err := pins.Forget(dir, choiceOf(p.Forget, p.Client))
		return p.tell("forgotten", done, err)
	}
	listing, err := pins.List(dir)
	if err != nil {
		return err
	}
	if p.JSON {
		return writeJSON(p.Out, listing)
	}
	return p.write(listing)
}

// nothingYet is what there is to say of a state folder that no pod has made.
func (p PinsOptions) nothingYet() error {
	if words := cmp.Or(p.Accept, p.Forget); words != "" {
		return &pins.NothingError{Choice: choiceOf(words, p.Client)}
	}
	if p.Trust {
		return errors.New("no pins were lost: there is no state folder yet; see acpod mcp pins")
	}
	if p.JSON {
		return writeJSON(p.Out, pins.Listing{Entries: []pins.Entry{}})
	}
	return p.write(pins.Listing{})
}

// choiceOf reads SERVER.TOOL or SERVER: a server's name has no dot, a tool's may.
func choiceOf(words, client string) pins.Choice {
	server, tool, _ := strings.Cut(words, ".")
	return pins.Choice{Server: server, Tool: tool, Scope: client}
}

// pinsWritten is how long a running pod may take until what it has just held back stands in the file.
const pinsWritten = 2 * time.Second

// acceptPins accepts; what was refused a moment ago may not be in the file yet.
func acceptPins(dir string, choice pins.Choice) ([]pins.Entry, error) {
	look := time.NewTicker(pinsWritten / 20)
	defer look.Stop()
	for deadline := time.Now().Add(pinsWritten); ; <-look.C {
		done, err := pins.Accept(dir, choice)
		if nothing := (*pins.NothingError)(nil); !errors.As(err, &nothing) || time.Now().After(deadline) {
			return done, err
		}
	}
}

func (p PinsOptions) tell(word string, done []pins.Entry, err error) error {
	if err != nil {
		return err
	}
	if p.JSON {
		return writeJSON(p.Out, done)
	}
	for _, e := range done {
		if _, err := fmt.Fprintf(p.Out, "%s: %s.%s%s\n", word, kernel.Escape(e.Server, 64), kernel.Escape(e.Tool, 128), changedText(e)); err != nil {
			return err
		}
	}
	return nil
}

func (p PinsOptions) write(l pins.Listing) error {
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	if len(l.Entries) > 0 {
		_, _ = fmt.Fprintln(w, "TOOL\tOF\tPINNED\tHELD BACK")
	}
	for _, e := range l.Entries {
		_, _ = fmt.Fprintf(w, "%s.%s\t%s\t%s\t%s\n", kernel.Escape(e.Server, 64), kernel.Escape(e.Tool, 128), cmp.Or(kernel.Escape(e.Scope, 24), "mcp.json"),
			e.Pinned.Format("2006-01-02 15:04"), strings.TrimPrefix(changedText(e), ", "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case l.Unreadable:
		_, err := fmt.Fprintln(p.Out, "pins were lost: no tool is taken for a new one until acpod mcp pins --trust")
		return err
	case len(l.Entries) == 0:
		_, err := fmt.Fprintln(p.Out, "nothing is pinned yet")
		return err
	}
	return nil
}

func changedText(e pins.Entry) string {
	if len(e.Changed) == 0 {
		return ""
	}
	return ", changed: " + strings.Join(e.Changed, ", ")
}
