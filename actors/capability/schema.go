package capability

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/kaptinlin/jsonschema"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Bounds of the check of arguments. Schemas are written by strangers.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 128
	maxArgsDepth   = 128
	maxListed      = 32     // failing paths named in one refusal
	maxSteps       = 20_000 // of one validation: less than a second, and 20 MiB that are paid for
)

// checkSlots bounds how many validations run at once in the process: they are
// pure work of the processor.
var checkSlots = make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))

// Schema is a tool's input schema, ready to check arguments with. It is safe
// from any goroutine.
//
// A schema that cannot be compiled does not keep a tool from being called: its
// server checks the arguments itself, and the pod says that it did not. One that
// refers to something outside of itself, or says that its words mean what nobody here
// knows, refuses every call: nothing is ever
// fetched, and what cannot be read must not be waved through.
type Schema struct {
	compiled  *jsonschema.Schema
	document  any // decoded, for the budget
	anchors   anchors
	cost      cost
	plain     *plain // nil when only the validator can tell
	unchecked string // why arguments pass unchecked
	refused   string // why every call is refused
}

// CompileSchema compiles a raw input schema. It never fails: what is wrong with
// the schema is told by [Schema.Check]. An empty schema takes every object.
func CompileSchema(raw []byte) (s *Schema) {
	s = &Schema{}
	defer func() {
		if r := recover(); r != nil {
			s.compiled, s.unchecked = nil, "the compiler gave up on the schema"
		}
		if s.compiled == nil { // it has no say: only why is kept
			s.document, s.anchors, s.cost = nil, anchors{}, cost{}
		}
	}()
	if len(raw) > maxSchemaBytes {
		s.unchecked = fmt.Sprintf("the schema has more than %d KiB", maxSchemaBytes>>10)
		return s
	}
	if depth(raw) > maxSchemaDepth {
		s.unchecked = fmt.Sprintf("the schema nests deeper than %d", maxSchemaDepth)
		return s
	}
	if err := json.Unmarshal(raw, &s.document); err != nil {
		s.unchecked = "the schema is not sound JSON: " + oneLine(err.Error())
		return s
	}
	if dialect, known := dialectOf(s.document); !known {
		s.refused = "its input schema is written in " + dialect + ", a dialect that nobody here can judge by; the tool's author must use one of JSON Schema's, 2020-12 or before"
		return s
	}
	if s.unchecked = oddity(s.document); s.unchecked != "" {
		return s
	}
	if s.cost, s.unchecked = costOf(raw, s.document); s.unchecked != "" {
		s.cost.bytes, s.document = 0, nil
		return s
	}
	s.anchors = indexed(s.document)
	compiled, err := newCompiler().Compile(withoutContent(raw, s.document))
	switch {
	case errors.Is(err, jsonschema.ErrReferenceResolution) && refersOutside(s.document):
		s.refused = "its input schema refers to something that is not part of it, which is never fetched; the tool's author must write it into the schema"
	case err != nil:
		s.unchecked = "the schema does not compile: " + oneLine(err.Error())
	default:
		s.compiled, s.plain = compiled, plainOf(s.document)
	}
	return s
}

// newCompiler is a compiler for one schema: it keeps what it compiled by $id, so
// sharing one would let one tool's schema stand for another's. It loads nothing.
func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	clear(c.Loaders) // http and https
	return c
}

// ArgumentError says what is wrong with arguments, one line.
type ArgumentError struct{ Text string }

func (e *ArgumentError) Error() string { return e.Text }

// Check judges the bytes of arguments: one JSON object without repeated members
// that the schema takes. The account pays for what that takes while it takes it.
// The error is an *[ArgumentError] that names every failing path, at most 32, or
// *kernel.Overloaded, or ctx's end. unchecked says why the schema had no say, for
// the pod's own log.
func (s *Schema) Check(ctx context.Context, account *kernel.Account, args []byte) (unchecked string, err error) {
	if err := sound(args); err != nil {
		return "", err
	}
	if err := takeSlot(ctx); err != nil {
		return "", err
	}
	defer giveSlot()
	return s.judge(account, args)
}

// sound judges what arguments have to be whatever the schema.
func sound(args []byte) error {
	if !jsonrpc.IsObject(args) {
		return &ArgumentError{"arguments must be a JSON object, not " + kindOf(args)}
	}
	if depth(args) > maxArgsDepth {
		return &ArgumentError{fmt.Sprintf("arguments nest deeper than %d", maxArgsDepth)}
	}
	return nil
}

// judge is Check of sound arguments, by whoever has a slot.
func (s *Schema) judge(account *kernel.Account, args []byte) (unchecked string, err error) {
	if s.refused != "" {
		return "", &ArgumentError{"the tool cannot be called: " + s.refused}
	}
	if err := variants(account, args); err != nil {
		return "", err
	}
	load := weigh(args)
	if judged, unchecked, err := s.checkInPlace(account, args, load); judged {
		return unchecked, err
	}
	decoded, err := pay(account, load.decoded())
	if err != nil {
		return "", err
	}
	defer decoded.Release()
	value, err := decodeArguments(args)
	if err != nil {
		return "", &ArgumentError{"arguments are not sound JSON: " + oneLine(err.Error())}
	}
	steps, ok := s.steps(value, maxSteps)
	if !ok {
		return "checking these arguments against the schema would take too long", nil
	}
	judged, err := pay(account, int64(bytesPerStep*steps))
	if err != nil {
		return "", err
	}
	defer judged.Release()
	return "", s.validate(value)
}

// checkInPlace judges what can be judged without decoding it: arguments of a plain schema that fit, and those that no schema
// has a say about.
func (s *Schema) checkInPlace(account *kernel.Account, args []byte, load load) (judged bool, unchecked string, err error) {
	heavy := load.tokens > maxTokens
	if s.compiled != nil && s.plain == nil && !heavy {
		return false, "", nil
	}
	read, err := pay(account, load.inPlace())
	if err != nil {
		return true, "", err
	}
	defer read.Release()
	switch {
	case s.compiled != nil && !heavy:
		return s.plain.takes(args), "", nil
	case s.compiled != nil:
		unchecked = "these arguments have too many values to be checked"
	default:
		unchecked = s.unchecked
	}
	if err := inPlace(args).SkipValue(); err != nil {
		return true, "", &ArgumentError{"arguments are not sound JSON: " + oneLine(err.Error())}
	}
	return true, unchecked, nil
}

// validate runs the validator on the decoded arguments: its own decoder would
// refuse a lone surrogate. A panic of it is about these arguments.
func (s *Schema) validate(value map[string]any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &ArgumentError{"the arguments could not be checked against the tool's input schema"}
		}
	}()
	result := s.compiled.ValidateMap(value)
	if result.IsValid() {
		return nil
	}
	list := failures(result, value)
	if more := len(list) - maxListed; more > 0 {
		list = append(list[:maxListed:maxListed], fmt.Sprintf("and %d more", more))
	}
	return &ArgumentError{"the arguments do not fit the tool's input schema: " + strings.Join(list, "; ")}
}

// decodeArguments decodes once and strictly: no member may stand twice, because
// the server might read the other one. Numbers keep their digits. Bytes that are
// no UTF-8 and lone surrogates, which agents do send, do no harm to the judgement.
func decodeArguments(args []byte) (map[string]any, error) {
	var value map[string]any
	err := json.Unmarshal(args, &value, jsontext.AllowInvalidUTF8(true), json.WithUnmarshalers(keepDigits))
	return value, err
}

// keepDigits decodes an integer of up to 64 bits as one, any other number as a
// float. One that no float can hold, such as 1e999999, is refused: it costs those
// who compute with it too much.
var keepDigits = json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		*v = i
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return errors.New("a number is out of range")
	}
	*v = f
	return nil
})

// kindOf names what stands in place of an object.
func kindOf(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// depth is how deep arrays and objects nest in a well-formed JSON text.
func depth(raw []byte) int {
	now, most := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = closingQuote(raw, i+1)
		case '{', '[':
			now++
			most = max(most, now)
		case '}', ']':
			now--
		}
	}
	return most
}

// closingQuote is the index of the quote that ends the text whose inside begins at i; len(raw) when there is none.
func closingQuote(raw []byte, i int) int {
	for quote := -1; i < len(raw); {
		if quote < i {
			next := bytes.IndexByte(raw[i:], '"')
			if next < 0 {
				break
			}
			quote = i + next
		}
		slash := bytes.IndexByte(raw[i:quote], '\\')
		if slash < 0 {
			return quote
		}
		i += slash + 2
	}
	return len(raw)
}

// oneLine keeps an error's text on one line and short.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}
