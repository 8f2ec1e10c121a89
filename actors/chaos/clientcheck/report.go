package clientcheck

import (
	"fmt"
	"io"
	"strings"

	"github.com/acpod/acpod/actors/chaos/tally"
)

// Client is what was seen of the client. What it wrote stands here quoted and cut.
type Client struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Secret      bool     `json:"secret"`      // it gave one
	Generations string   `json:"generations"` // of its servers: A, B, C, 0
	Servers     []Server `json:"servers"`
	Sockets     int      `json:"sockets"` // that it had
}

// Server is one that it declared and that was asked.
type Server struct {
	Name       string `json:"name"`
	Generation string `json:"generation"`
	Tools      int    `json:"tools"`
	Called     string `json:"called"` // the tool that was called, "" for none
}

// Report is a whole run.
type Report struct {
	Address string `json:"address"`
	Client  Client `json:"client"`
	Ended   string `json:"ended,omitempty"` // why the check is not whole
	tally.Sheet
}

// JSON writes the report as one object on one line.
func (r *Report) JSON(w io.Writer) error { return tally.JSON(w, r) }

// Text writes the report for people: a line a row, and what was expected and what came where a row failed.
func (r *Report) Text(w io.Writer) error {
	var notes []string
	if r.Ended != "" {
		notes = append(notes, "the check is not whole: "+r.Ended)
	}
	return r.Sheet.Text(w, fmt.Sprintf("%s: %s", r.Address, r.Client.describe()), notes)
}

func (c Client) describe() string {
	if c.Name == "" {
		c.Name = "a client without a name"
	}
	text := strings.TrimSpace(c.Name + " " + c.Version)
	if c.Secret {
		text += ", with a secret"
	} else {
		text += ", without a secret"
	}
	for _, s := range c.Servers {
		text += fmt.Sprintf(", server %s (generation %s, %d tools)", s.Name, s.Generation, s.Tools)
		if s.Called != "" {
			text += fmt.Sprintf(", %s called", s.Called)
		}
	}
	return text
}
