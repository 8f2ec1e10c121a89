package capability

import (
	"encoding/json/v2"
	"strings"
	"testing"
)

// What the plain form takes, the validator takes: over the whole corpus of the oracle, where it has a say at all.
func TestThePlainFormTakesNothingThatTheValidatorRefuses(t *testing.T) {
	agreed := 0
	for name, row := range oracleCorpus {
		s := CompileSchema([]byte(row.schema))
		if s.plain == nil {
			continue
		}
		for _, args := range row.args {
			value, err := decodeArguments([]byte(args))
			if err != nil || !s.plain.takes([]byte(args)) {
				continue
			}
			if err := s.validate(value); err != nil {
				t.Errorf("%s %s: the plain form takes it, the validator says %v", name, args, err)
			}
			agreed++
		}
	}
	if agreed < 12 {
		t.Errorf("the plain form took %d arguments of the corpus: it is of no use", agreed)
	}
}

func TestThePlainFormTakes(t *testing.T) {
	const tool = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","title":"T","properties":{"selector":{"type":"string","minLength":1,"maxLength":4},` +
		`"mode":{"type":"string","enum":["a","b"]},"n":{"type":"integer"},"x":{"type":"number"},"on":{"type":"boolean"},"none":{"type":"null"},` +
		`"any":{"description":"d"},"list":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]}}},` +
		`"required":["selector"],"additionalProperties":false}`
	s := CompileSchema([]byte(tool))
	if s.plain == nil {
		t.Fatal("a common schema has no plain form")
	}
	for args, takes := range map[string]bool{
		`{"selector":"#a"}`: true, `{"selector":"żółć"}`: true, `{"selector":""}`: false, `{"selector":"12345"}`: false, `{}`: false, `{"selector":null}`: false,
		`{"selector":"#a","mode":"b"}`: true, `{"selector":"#a","mode":"c"}`: false, `{"selector":"#a","mode":1}`: false,
		`{"selector":"#a","n":1}`: true, `{"selector":"#a","n":1.5}`: false, `{"selector":"#a","x":1}`: true, `{"selector":"#a","x":1.5}`: true, `{"selector":"#a","x":"1"}`: false,
		`{"selector":"#a","on":true,"none":null}`: true, `{"selector":"#a","on":0}`: false, `{"selector":"#a","none":false}`: false,
		`{"selector":"#a","any":[{"deep":1}]}`: true, `{"selector":"#a","other":1}`: false,
		`{"selector":"#a","list":[{"k":"v"},{"k":"w","more":1}]}`: true, `{"selector":"#a","list":[{}]}`: false, `{"selector":"#a","list":{}}`: false,
	} {
		value, err := decodeArguments([]byte(args))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.plain.takes([]byte(args)); got != takes {
			t.Errorf("%s: takes is %v", args, got)
		}
		if got := s.validate(value) == nil; got != takes {
			t.Errorf("%s: the validator's verdict is %v", args, got)
		}
		if _, err := s.Check(t.Context(), nil, []byte(args)); (err == nil) != takes {
			t.Errorf("%s: the check says %v", args, err)
		}
	}
}

// Each of these may mean more than the plain form understands.
func TestOtherSchemasHaveNoPlainForm(t *testing.T) {
	for _, schema := range []string{
		`true`, `[]`, `{"type":["string","null"]}`, `{"type":"object","minProperties":1}`, `{"properties":{"a":true}}`, `{"properties":{"a":{"$ref":"#"}}}`,
		`{"properties":{"a":{"$schema":"x"}}}`, `{"additionalProperties":{}}`, `{"required":"a"}`, `{"required":[1]}`, `{"items":[{}]}`, `{"enum":[1]}`, `{"enum":[]}`,
		`{"maxLength":1.5}`, `{"maxLength":-1}`, `{"minLength":"1"}`, `{"pattern":"a"}`, `{"allOf":[]}`, `{"properties":[]}`, `{"const":1}`, `{"contentEncoding":"base64"}`,
		`{"x-unknown":1}`, strings.Repeat(`{"items":`, maxSchemaDepth+2) + `{}` + strings.Repeat(`}`, maxSchemaDepth+2),
	} {
		var document any
		if err := json.Unmarshal([]byte(schema), &document); err != nil {
			t.Fatal(err)
		}
		if plainOf(document) != nil {
			t.Errorf("%.80s has a plain form", schema)
		}
	}
}

// A name that a schema requires ten thousand times is looked for once.
func TestARequiredNameIsLookedForOnce(t *testing.T) {
	s := CompileSchema([]byte(`{"required":[` + many(10_000, `"a"`) + `,"b","a"]}`))
	if s.plain == nil || len(s.plain.required) != 2 {
		t.Errorf("%d names are looked for", len(s.plain.required))
	}
}
