package capability

import (
	"bytes"
	"crypto/sha256"
	"encoding/json/jsontext"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// DigestVersion is the recipe by which [DigestOf] works. A change of what the bytes of a digest are made of is a new version, and the
// old recipe stays in [DigestBy]: what was pinned by it is compared by it.
const DigestVersion = 1

// Digest is what a tool was at one moment: one SHA-256 for each part of its definition that an agent reads or that a decision
// rests on. Comparable.
type Digest struct {
	Version      uint8
	Title        [32]byte
	Description  [32]byte
	InputSchema  [32]byte
	OutputSchema [32]byte
	Annotations  [32]byte
}

// DigestOf is the digest of a tool as it was published, before anything was normalised. The order of members, white space
// between them and the way in which a character is escaped are no part of it, as some servers write them anew at each start; each character
// of a text is, the invisible ones too, and so is how a number is written. Its name is not: another name is another tool.
func DigestOf(t *mcp.Tool) Digest {
	d, _ := DigestBy(DigestVersion, t)
	return d
}

// DigestBy is the digest by an older recipe; false when this program has none of that version.
func DigestBy(version uint8, t *mcp.Tool) (Digest, bool) {
	if version != 1 {
		return Digest{}, false
	}
	d := Digest{Version: version}
	if o, err := jsonrpc.ParseObject(t.Raw); err == nil {
		part := func(name string) [32]byte { raw, _ := o.Get(name); return partDigest(raw) }
		d.Title, d.Description = part("title"), part("description")
		d.InputSchema, d.OutputSchema, d.Annotations = part("inputSchema"), part("outputSchema"), part("annotations")
		return d, true
	}
	a := t.Annotations
	d.Title, d.Description = partDigest(textPart(t.Title)), partDigest(textPart(t.Description))
	d.InputSchema, d.OutputSchema = partDigest(t.InputSchema), partDigest(t.OutputSchema)
	d.Annotations = sha256.Sum256([]byte{byte(a.ReadOnly), byte(a.Destructive), byte(a.Idempotent), byte(a.OpenWorld)})
	return d, true
}

// textPart is a text as the JSON that it would be read from.
func textPart(s string) []byte {
	if s == "" {
		return nil
	}
	return jsonrpc.AppendString(nil, s)
}

// Changes names the parts in which d is not as pinned, in a fixed order, nil when there are none. Digests of two recipes
// cannot be compared.
func (d Digest) Changes(pinned Digest) []string {
	if d == pinned {
		return nil
	}
	if d.Version != pinned.Version {
		return []string{"digest version"}
	}
	var parts []string
	for _, p := range [...]struct {
		name     string
		now, was [32]byte
	}{
		{"title", d.Title, pinned.Title},
		{"description", d.Description, pinned.Description},
		{"input schema", d.InputSchema, pinned.InputSchema},
		{"output schema", d.OutputSchema, pinned.OutputSchema},
		{"annotations", d.Annotations, pinned.Annotations},
	} {
		if p.now != p.was {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// Sum is the whole digest in one.
func (d Digest) Sum() [32]byte {
	h := sha256.New()
	h.Write([]byte{d.Version})
	for _, part := range [...][32]byte{d.Title, d.Description, d.InputSchema, d.OutputSchema, d.Annotations} {
		h.Write(part[:])
	}
	return [32]byte(h.Sum(nil))
}

// sortedDepth is how deep objects may stand in each other for their members to be put in order. Sorting takes time in proportion to the
// depth, which is a stranger's choice; a deeper value is what its bytes are. So is one in which a member stands twice, where order means
// something.
const sortedDepth = 64

// partDigest is the digest of one JSON value, absent and null being the same.
func partDigest(raw []byte) [32]byte {
	if len(raw) == 0 || jsonrpc.IsNull(raw) {
		return sha256.Sum256(nil)
	}
	h := sha256.New()
	plain := jsontext.Value(bytes.Clone(raw))
	if depth(raw) > sortedDepth || plain.Format(jsontext.AllowInvalidUTF8(true), jsontext.ReorderRawObjects(true),
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false), jsontext.PreserveRawStrings(false)) != nil {
		h.Write([]byte("raw:"))
		h.Write(raw)
		return [32]byte(h.Sum(nil))
	}
	h.Write(plain)
	if bytes.Contains(plain, []byte("\uFFFD")) { // it may stand for several things, which are told apart by how they were written
		h.Write([]byte("\x00"))
		h.Write(raw)
	}
	return [32]byte(h.Sum(nil))
}
