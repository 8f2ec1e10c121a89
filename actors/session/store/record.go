package store

import (
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/session"
)

// version is that of the records that are written. A file of a higher one is a newer acpod's.
const version = 1

// stored is a record with what its lease left in it.
type stored struct {
	session.Durable
	generation uint64
	pod        string // that has it; "" = nobody
}

// text is how a record is written. Pins and the last turn are texts in it, not JSON: they come back to the byte.
type text struct {
	V          int       `json:"v"`
	ID         string    `json:"id"`
	Generation uint64    `json:"generation"`
	Pod        string    `json:"pod,omitzero"`
	Key        string    `json:"key,omitzero"`
	Client     string    `json:"client_sha256,omitzero"`
	Agent      string    `json:"agent,omitzero"`
	Cwd        string    `json:"cwd"`
	Additional []string  `json:"additional,omitempty"`
	Servers    []string  `json:"servers,omitempty"`
	Pins       string    `json:"pins,omitzero"`
	LastTurn   string    `json:"last_turn,omitzero"`
	Missed     int64     `json:"missed_updates,omitzero"`
	MissedB    int64     `json:"missed_bytes,omitzero"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
}

// errNewer is a record of another version.
var errNewer = errors.New("it was written by a newer acpod")

// encode writes a record down.
func encode(r stored) ([]byte, error) {
	t := text{
		V: version, ID: r.ID, Generation: r.generation, Pod: r.pod, Key: r.Key, Agent: r.Agent, Cwd: r.Cwd, Additional: r.Additional, Servers: r.Servers,
		Pins: string(r.Pins), LastTurn: string(r.LastTurn), Missed: r.Missed, MissedB: r.MissedB, Created: r.Created.UTC(), Updated: r.Updated.UTC(),
	}
	if r.Client != [32]byte{} {
		t.Client = hex.EncodeToString(r.Client[:])
	}
	b, err := json.Marshal(t)
	switch {
	case err != nil:
		return nil, err
	case len(b) >= session.DurableBytes:
		return nil, fmt.Errorf("it is %d bytes long and may be %d", len(b)+1, session.DurableBytes)
	}
	return append(b, '\n'), nil
}

// decode reads what encode wrote, and nothing else: errNewer, or what is wrong.
func decode(b []byte) (stored, error) {
	var v struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return stored{}, err
	}
	if v.V > version {
		return stored{}, errNewer
	}
	var t text
	if err := json.Unmarshal(b, &t, json.RejectUnknownMembers(true)); err != nil {
		return stored{}, err
	}
	if t.V < 1 || t.ID == "" || t.Generation == 0 {
		return stored{}, errors.New("it names no version, session or generation")
	}
	r := stored{generation: t.Generation, pod: t.Pod, Durable: session.Durable{
		ID: t.ID, Key: t.Key, Agent: t.Agent, Cwd: t.Cwd, Additional: t.Additional, Servers: t.Servers,
		Pins: bytesOf(t.Pins), LastTurn: bytesOf(t.LastTurn), Missed: t.Missed, MissedB: t.MissedB, Created: t.Created, Updated: t.Updated,
	}}
	if t.Client != "" {
		sum, err := hex.DecodeString(t.Client)
		if err != nil || len(sum) != len(r.Client) {
			return stored{}, errors.New("its client is no SHA-256")
		}
		r.Client = [32]byte(sum)
	}
	return r, nil
}

func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
