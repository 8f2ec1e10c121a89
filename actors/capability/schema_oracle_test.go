package capability

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"
)

// The oracle is a second validator with a full score on the standard's own
// suite. Whatever our guarded one decides differently stands in oracleKnown, with
// the reason; docs/adr/0006-argument-schemas.md lists the same.

// judged is one schema and arguments to try.
type judged struct {
	schema string
	args   []string
}

// oracleCorpus are schemas as tools have them, and as nobody should.
var oracleCorpus = map[string]judged{
	"empty":       {`{}`, []string{`{}`, `{"a":1}`}},
	"object only": {`{"type":"object"}`, []string{`{}`, `{"a":[1,{"b":null}]}`}},
	"read_dom":    {`{"type":"object","properties":{"selector":{"type":"string"}},"additionalProperties":false}`, []string{`{}`, `{"selector":"#a"}`, `{"selector":1}`, `{"Selector":"x"}`, `{"selector":"a","more":1}`}},
	"navigate":    {`{"type":"object","properties":{"url":{"type":"string","format":"uri","minLength":1}},"required":["url"]}`, []string{`{}`, `{"url":""}`, `{"url":"not a uri"}`, `{"url":"https://example.com/"}`, `{"url":null}`}},
	"type":        {`{"type":"object","properties":{"selector":{"type":"string"},"text":{"type":"string","maxLength":5}},"required":["selector","text"]}`, []string{`{"selector":"a","text":"hello"}`, `{"selector":"a","text":"hello!"}`, `{"selector":"a","text":"żółćą"}`, `{"selector":"a","text":"😀😀😀😀😀"}`, `{"selector":"a"}`, `{"text":"x"}`}},
	"draft-07 filesystem": {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"},"newText":{"type":"string"}},"required":["oldText","newText"],"additionalProperties":false}},"dryRun":{"type":"boolean","default":false}},"required":["path","edits"],"additionalProperties":false}`,
		[]string{`{"path":"a","edits":[]}`, `{"path":"a","edits":[{"oldText":"x","newText":"y"}]}`, `{"path":"a","edits":[{"oldText":"x"}]}`, `{"path":"a","edits":[{"oldText":"x","newText":"y","z":1}]}`, `{"path":"a","edits":"x"}`, `{"edits":[]}`, `{"path":"a","edits":[],"dryRun":"yes"}`}},
	"draft-07 definitions": {`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"E":{"type":"object","properties":{"name":{"type":"string"},"kind":{"enum":["a","b"]}},"required":["name"]}},"type":"object","properties":{"entities":{"type":"array","items":{"$ref":"#/definitions/E"},"minItems":1,"uniqueItems":true}}}`,
		[]string{`{"entities":[{"name":"x","kind":"a"}]}`, `{"entities":[]}`, `{"entities":[{"kind":"a"}]}`, `{"entities":[{"name":"x","kind":"c"}]}`, `{"entities":[{"name":"x"},{"name":"x"}]}`, `{"entities":[{"name":"x"},{"name":"y"}]}`}},
	"draft-07 dependencies":   {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, []string{`{}`, `{"a":1}`, `{"a":1,"b":2}`, `{"c":1}`, `{"c":1,"d":1}`}},
	"draft-07 tuple":          {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"string"}],"additionalItems":false}}}`, []string{`{"p":[1,"a"]}`, `{"p":["a",1]}`, `{"p":[1,"a",2]}`, `{"p":[]}`}},
	"draft-07 ref siblings":   {`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"S":{"type":"string"}},"type":"object","properties":{"a":{"$ref":"#/definitions/S","maxLength":1}}}`, []string{`{"a":"long"}`, `{"a":1}`}},
	"draft-06 exclusive":      {`{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","properties":{"n":{"exclusiveMinimum":0}}}`, []string{`{"n":0}`, `{"n":0.1}`}},
	"draft-04 exclusive":      {`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"minimum":0,"exclusiveMinimum":true}}}`, []string{`{"n":0}`, `{"n":1}`}},
	"2019-09 dependent":       {`{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"properties":{"d":{"type":"string"}}}}}`, []string{`{"a":1}`, `{"a":1,"b":1}`, `{"c":1,"d":2}`, `{"c":1,"d":"x"}`}},
	"2020-12 prefixItems":     {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"at":{"prefixItems":[{"type":"number"},{"type":"number"}],"items":false,"minItems":2}}}`, []string{`{"at":[1,2]}`, `{"at":[1]}`, `{"at":[1,2,3]}`, `{"at":[1,"2"]}`}},
	"2020-12 defs":            {`{"type":"object","$defs":{"Point":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"]}},"properties":{"from":{"$ref":"#/$defs/Point"},"to":{"$ref":"#/$defs/Point"}},"required":["from"]}`, []string{`{"from":{"x":1,"y":2}}`, `{"from":{"x":1}}`, `{"from":{"x":1,"y":2},"to":{"x":"a","y":1}}`, `{}`}},
	"2020-12 unevaluated":     {`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}}],"properties":{"b":{"type":"integer"}},"unevaluatedProperties":false}`, []string{`{"a":"x","b":1}`, `{"a":"x","c":1}`, `{"b":1.5}`}},
	"2020-12 anchor":          {`{"type":"object","$defs":{"S":{"$anchor":"S","type":"string"}},"properties":{"a":{"$ref":"#S"}}}`, []string{`{"a":"x"}`, `{"a":1}`}},
	"2020-12 dynamicRef":      {`{"$id":"https://example.com/tree","$dynamicAnchor":"node","type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$dynamicRef":"#node"}}}}`, []string{`{"v":1,"kids":[{"v":2}]}`, `{"v":1,"kids":[{"v":"x"}]}`}},
	"embedded resource":       {`{"$id":"https://example.com/root","type":"object","$defs":{"s":{"$id":"https://example.com/s","type":"string"}},"properties":{"a":{"$ref":"s"}}}`, []string{`{"a":"x"}`, `{"a":1}`}},
	"recursive tree":          {`{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"additionalProperties":false}`, []string{`{"v":1,"next":{"v":2,"next":{"v":3}}}`, `{"next":{"next":{"v":"x"}}}`, `{"next":{"q":1}}`}},
	"anyOf optional":          {`{"type":"object","properties":{"n":{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}],"default":null}}}`, []string{`{"n":null}`, `{"n":1}`, `{"n":0}`, `{"n":"1"}`, `{}`}},
	"oneOf actions":           {`{"type":"object","oneOf":[{"properties":{"action":{"const":"go"},"url":{"type":"string"}},"required":["action","url"]},{"properties":{"action":{"const":"back"}},"required":["action"]}]}`, []string{`{"action":"go","url":"x"}`, `{"action":"go"}`, `{"action":"back"}`, `{"action":"up"}`}},
	"not":                     {`{"type":"object","not":{"required":["a","b"]}}`, []string{`{"a":1}`, `{"a":1,"b":1}`}},
	"if then else":            {`{"type":"object","properties":{"kind":{"enum":["file","dir"]}},"if":{"properties":{"kind":{"const":"file"}},"required":["kind"]},"then":{"required":["size"]},"else":{"maxProperties":1}}`, []string{`{"kind":"file"}`, `{"kind":"file","size":1}`, `{"kind":"dir"}`, `{"kind":"dir","x":1}`}},
	"patternProperties":       {`{"type":"object","patternProperties":{"^x-":{"type":"string"},"^[0-9]+$":{"type":"integer"}},"additionalProperties":false}`, []string{`{"x-a":"b"}`, `{"x-a":1}`, `{"12":3}`, `{"12":"a"}`, `{"y":1}`}},
	"propertyNames":           {`{"type":"object","propertyNames":{"pattern":"^[a-z]+$","maxLength":3}}`, []string{`{"abc":1}`, `{"abcd":1}`, `{"A":1}`}},
	"contains":                {`{"type":"object","properties":{"l":{"type":"array","contains":{"const":7},"minContains":1,"maxContains":2}}}`, []string{`{"l":[7]}`, `{"l":[1]}`, `{"l":[7,7,7]}`, `{"l":[]}`}},
	"sizes":                   {`{"type":"object","minProperties":1,"maxProperties":2,"properties":{"l":{"type":"array","minItems":1,"maxItems":2}}}`, []string{`{}`, `{"l":[1]}`, `{"l":[]}`, `{"l":[1,2,3]}`, `{"a":1,"b":2,"c":3}`}},
	"numbers":                 {`{"type":"object","properties":{"n":{"type":"integer","minimum":-5,"maximum":9007199254740993},"f":{"type":"number","multipleOf":0.01},"e":{"exclusiveMaximum":1}}}`, []string{`{"n":1.0}`, `{"n":1.5}`, `{"n":9007199254740993}`, `{"n":9007199254740994}`, `{"n":-6}`, `{"f":19.99}`, `{"f":19.999}`, `{"e":1}`, `{"e":0.999}`, `{"n":1e2}`}},
	"enum of kinds":           {`{"type":"object","properties":{"v":{"enum":[1,"1",null,true,{"a":[1]}]}}}`, []string{`{"v":1}`, `{"v":1.0}`, `{"v":"1"}`, `{"v":null}`, `{"v":false}`, `{"v":{"a":[1]}}`, `{"v":{"a":[2]}}`}},
	"const object":            {`{"type":"object","properties":{"v":{"const":{"a":1,"b":[true]}}}}`, []string{`{"v":{"b":[true],"a":1.0}}`, `{"v":{"a":1}}`}},
	"types list":              {`{"type":["object","null"],"properties":{"v":{"type":["string","array"]}}}`, []string{`{"v":"x"}`, `{"v":[1]}`, `{"v":1}`}},
	"boolean schemas":         {`{"type":"object","properties":{"yes":true,"no":false}}`, []string{`{"yes":1}`, `{"no":1}`, `{}`}},
	"uniqueItems objects":     {`{"type":"object","properties":{"l":{"uniqueItems":true}}}`, []string{`{"l":[{"a":1,"b":2},{"b":2,"a":1}]}`, `{"l":[1,1.0]}`, `{"l":[1,true]}`, `{"l":["1",1]}`}},
	"additional schema":       {`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, []string{`{"a":"x","b":1}`, `{"a":"x","b":"y"}`}},
	"nested required":         {`{"type":"object","required":["o"],"properties":{"o":{"type":"object","required":["p","q"],"properties":{"p":{"type":"array","items":{"type":"object","required":["r"]}}}}}}`, []string{`{"o":{}}`, `{"o":{"p":[{}],"q":1}}`, `{"o":{"p":[{"r":1}],"q":1}}`}},
	"annotations":             {`{"title":"T","description":"d","$comment":"c","type":"object","examples":[{}],"deprecated":true,"readOnly":true,"x-order":1,"properties":{"a":{"type":"string","nullable":true,"example":1}}}`, []string{`{"a":"x"}`, `{"a":null}`}},
	"content is annotation":   {`{"type":"object","properties":{"img":{"type":"string","contentEncoding":"base64","contentMediaType":"application/json"},"contentEncoding":{"type":"integer"}}}`, []string{`{"img":"not base64 ~"}`, `{"img":"eA=="}`, `{"img":1}`, `{"contentEncoding":1}`, `{"contentEncoding":"x"}`}},
	"format is annotation":    {`{"type":"object","properties":{"m":{"type":"string","format":"email"},"d":{"format":"date-time"},"x":{"format":"uint32"}}}`, []string{`{"m":"nobody"}`, `{"d":"yesterday"}`, `{"x":-1}`}},
	"empty enum":              {`{"type":"object","properties":{"v":{"enum":[]}}}`, []string{`{"v":1}`, `{}`}},
	"empty required":          {`{"type":"object","required":[]}`, []string{`{}`}},
	"slash and tilde":         {`{"type":"object","properties":{"a/b":{"type":"string"},"c~d":{"$ref":"#/properties/a~1b"}}}`, []string{`{"a/b":"x","c~d":"y"}`, `{"a/b":1}`, `{"c~d":1}`}},
	"unicode names":           {`{"type":"object","properties":{"größe":{"type":"integer"},"\u0061":{"type":"string"}}}`, []string{`{"größe":1}`, `{"größe":"x"}`, `{"a":1}`, `{"\u0061":"x"}`}},
	"unicode pattern":         {`{"type":"object","properties":{"a":{"pattern":"^\\p{L}+$"}}}`, []string{`{"a":"żółć"}`, `{"a":"1"}`}},
	"pattern is not anchored": {`{"type":"object","properties":{"a":{"pattern":"b"}}}`, []string{`{"a":"abc"}`, `{"a":"ac"}`}},
	"legacy items in 2020":    {`{"type":"object","properties":{"p":{"items":[{"type":"string"}]}}}`, []string{`{"p":[1]}`}},
	"dependencies in 2020":    {`{"type":"object","dependencies":{"a":["b"]}}`, []string{`{"a":1}`, `{"a":1,"b":1}`}},
	"definitions in 2020":     {`{"type":"object","definitions":{"T":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/T"}}}`, []string{`{"a":"x"}`, `{"a":1}`}},
	"ref into nothing known":  {`{"type":"object","x-types":{"T":{"type":"string"}},"properties":{"a":{"$ref":"#/x-types/T"}}}`, []string{`{"a":"x"}`}},
	// hostile
	"ref to itself":        {`{"$ref":"#"}`, []string{`{}`, `{"a":1}`}},
	"allOf of itself":      {`{"allOf":[{"$ref":"#"}],"type":"object"}`, []string{`{}`}},
	"mutual refs":          {`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, []string{`{}`}},
	"look-ahead":           {`{"type":"object","properties":{"p":{"pattern":"^(?=.*[A-Z]).{8,}$"}}}`, []string{`{"p":"short"}`, `{"p":"Abcdefgh1"}`}},
	"unknown dialect":      {`{"$schema":"http://169.254.169.254/x","type":"object","required":["a"]}`, []string{`{}`, `{"a":1}`}},
	"remote ref":           {`{"type":"object","properties":{"a":{"$ref":"http://169.254.169.254/x"}}}`, []string{`{}`, `{"a":1}`}},
	"file ref":             {`{"type":"object","properties":{"a":{"$ref":"file:///etc/hostname"}}}`, []string{`{}`}},
	"dangling ref":         {`{"type":"object","properties":{"a":{"$ref":"#/nope"}}}`, []string{`{}`}},
	"type is a number":     {`{"type":5}`, []string{`{}`}},
	"required is null":     {`{"type":"object","required":null}`, []string{`{}`}},
	"required is a text":   {`{"required":"a"}`, []string{`{}`}},
	"properties is a list": {`{"properties":[]}`, []string{`{}`}},
	"unknown type":         {`{"type":"obj"}`, []string{`{}`}},
	"id is no uri":         {`{"$id":"not a uri %%","type":"object"}`, []string{`{}`}},
	"doubling":             {doubling(22), []string{`{}`}},
	"wide anyOf":           {wideAnyOf(1500), []string{`{"v":1499}`, `{"v":"x"}`}},
	"slow pattern":         {`{"type":"object","properties":{"p":{"pattern":"^(a+)+$"}}}`, []string{`{"p":"` + strings.Repeat("a", 5000) + `b"}`}},
	"branching recursion":  {`{"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, []string{nested(60), nested(3)}},
}

func doubling(n int) string {
	s := `{"$defs":{"d0":{"type":"object"}`
	for i := 1; i <= n; i++ {
		s += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	return s + fmt.Sprintf(`},"$ref":"#/$defs/d%d"}`, n)
}

func wideAnyOf(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"v":{"anyOf":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"const":%d}`, i)
	}
	b.WriteString(`]}}}`)
	return b.String()
}

func nested(n int) string {
	return strings.Repeat(`{"a":`, n) + `{}` + strings.Repeat(`}`, n)
}

// verdict of a validator: it takes the arguments, refuses them, or has no say.
type verdict string

const (
	takes    verdict = "takes"
	refuses  verdict = "refuses"
	hasNoSay verdict = "no say"
)

func ours(schema, args string) verdict {
	unchecked, err := CompileSchema([]byte(schema)).Check(testContext, nil, []byte(args))
	switch {
	case err != nil:
		return refuses
	case unchecked != "":
		return hasNoSay
	}
	return takes
}

type nothing struct{}

func (nothing) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not loaded", url) }

func theirs(schema, args string) (v verdict) {
	defer func() {
		if recover() != nil {
			v = hasNoSay
		}
	}()
	doc, err := oracle.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return hasNoSay
	}
	c := oracle.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource("mem:///tool.json", doc); err != nil {
		return hasNoSay
	}
	s, err := c.Compile("mem:///tool.json")
	if err != nil {
		return hasNoSay
	}
	value, err := oracle.UnmarshalJSON(bytes.NewReader([]byte(args)))
	if err != nil {
		return refuses
	}
	if s.Validate(value) != nil {
		return refuses
	}
	return takes
}

func TestOurValidatorAgreesWithTheOracleOrTheDifferenceIsListed(t *testing.T) {
	slow := map[string]bool{"doubling": true, "branching recursion": true} // the oracle would work for minutes
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(oracleCorpus)) {
		if slow[name] {
			continue
		}
		for _, args := range oracleCorpus[name].args {
			mine, other := ours(oracleCorpus[name].schema, args), theirs(oracleCorpus[name].schema, args)
			want, known := oracleKnown[name]
			if mine == other {
				continue
			}
			if !known || want.ours != mine || want.oracle != other {
				t.Errorf("%s %.80s: ours %s, the oracle %s, and that is not listed", name, args, mine, other)
			}
			seen[name] = true
		}
	}
	for name := range oracleKnown {
		if !seen[name] {
			t.Errorf("%s is listed as a difference and is none", name)
		}
	}
}

// difference is where we decide otherwise than the oracle, and why.
type difference struct {
	ours, oracle verdict
	why          string
}

var oracleKnown = map[string]difference{
	"ref to itself":          {takes, refuses, "the standard leaves a reference that never reaches an instance open; it asks for nothing"},
	"allOf of itself":        {takes, refuses, "likewise"},
	"mutual refs":            {takes, refuses, "likewise"},
	"dependencies in 2020":   {takes, refuses, "the keyword is not in 2020-12, which is the default dialect"},
	"empty enum":             {takes, refuses, "the standard says that an enum should not be empty; the server refuses the call itself"},
	"legacy items in 2020":   {refuses, hasNoSay, "the older form of items is understood in the newest dialect, as many tools have it"},
	"required is null":       {takes, hasNoSay, "as if it were absent, as many tools have it"},
	"id is no uri":           {takes, hasNoSay, "an $id that nothing refers to decides nothing"},
	"remote ref":             {refuses, hasNoSay, "what is not in the schema is never fetched, and must not be waved through"},
	"file ref":               {refuses, hasNoSay, "likewise"},
	"unknown dialect":        {refuses, hasNoSay, "what its words mean is not known"},
	"dangling ref":           {refuses, hasNoSay, "likewise"},
	"ref into nothing known": {hasNoSay, takes, "the validator follows references into known keywords only; the server checks itself"},
}
