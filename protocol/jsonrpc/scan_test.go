package jsonrpc

import (
	"runtime"
	"strings"
	"testing"
)

func TestScanFindsTheKindAndTheRanges(t *testing.T) {
	for name, tt := range map[string]struct {
		in                               string
		kind                             Kind
		id, method, params, result, fail string
	}{
		"request":                         {in: `{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x": [1, 2]}}`, kind: Request, id: "1", method: "a/b", params: `{"x": [1, 2]}`},
		"members in any order and spaced": {in: "\t{ \"params\" : [ ] ,\r\n\"method\":\"m\" , \"id\" : \"x\" , \"jsonrpc\" : \"2.0\" } \n", kind: Request, id: `"x"`, method: "m", params: "[ ]"},
		"the id null is an id":            {in: `{"jsonrpc":"2.0","id":null,"method":"m"}`, kind: Request, id: "null", method: "m"},
		"an integer beyond 2^53":          {in: `{"jsonrpc":"2.0","id":12345678901234567890123,"method":"m"}`, kind: Request, id: "12345678901234567890123", method: "m"},
		"a string id is kept as spelled":  {in: `{"jsonrpc":"2.0","id":"\u0041\ud800","method":"m"}`, kind: Request, id: `"\u0041\ud800"`, method: "m"},
		"a method in escapes":             {in: `{"jsonrpc":"2\u002e0","id":1,"method":"session\/\u006eew"}`, kind: Request, id: "1", method: "session/new"},
		"member names in escapes":         {in: `{"jsonrp\u0063":"2.0","\u0069d":7,"\u006dethod":"m"}`, kind: Request, id: "7", method: "m"},
		"notification":                    {in: `{"jsonrpc":"2.0","method":"n","params":null}`, kind: Notification, method: "n", params: "null"},
		"result":                          {in: `{"jsonrpc":"2.0","id":3,"result":{"a":"\ud800"}}`, kind: Response, id: "3", result: `{"a":"\ud800"}`},
		"result null":                     {in: `{"jsonrpc":"2.0","id":3,"result":null}`, kind: Response, id: "3", result: "null"},
		"error":                           {in: `{"jsonrpc":"2.0","id":3,"error":{"code":1}}`, kind: Response, id: "3", fail: `{"code":1}`},
		"error null beside a result":      {in: `{"jsonrpc":"2.0","id":3,"error":null,"result":4}`, kind: Response, id: "3", result: "4"},
		"an error outweighs a result":     {in: `{"jsonrpc":"2.0","id":3,"error":{},"result":4}`, kind: Response, id: "3", fail: "{}"},
		"a numeric string answers us":     {in: `{"jsonrpc":"2.0","id":"17","result":1}`, kind: Response, id: `"17"`, result: "1"},
		"a complaint with the id null":    {in: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`, kind: Response, id: "null", fail: `{"code":-32700,"message":"?"}`},
		"an answer needs no version":      {in: `{"id":1,"result":1}`, kind: Response, id: "1", result: "1"},
		"a method outweighs a result":     {in: `{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, kind: Request, id: "1", method: "m"},
		"unknown members are nobody's":    {in: `{"jsonrpc":"2.0","id":1,"method":"m","x":{"id":2},"ID":3}`, kind: Request, id: "1", method: "m"},
		"repeated names further inside":   {in: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":1,"id":2,"method":"n"}}`, kind: Request, id: "1", method: "m", params: `{"id":1,"id":2,"method":"n"}`},
		"bytes that are no UTF-8 inside":  {in: "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":\"\xff\xc0\"}}", kind: Notification, method: "m", params: "{\"a\":\"\xff\xc0\"}"},
		"the empty method":                {in: `{"jsonrpc":"2.0","id":1,"method":""}`, kind: Request, id: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			f, fault := Scan([]byte(tt.in))
			if fault != nil {
				t.Fatalf("refused: %+v", fault)
			}
			if f.Kind != tt.kind || string(f.ID.Raw()) != tt.id || f.Method != tt.method {
				t.Errorf("found %v, id %s, method %q", f.Kind, f.ID.Raw(), f.Method)
			}
			for what, pair := range map[string][2]string{
				"params": {string(f.Params), tt.params}, "result": {string(f.Result), tt.result}, "error": {string(f.Error), tt.fail},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s is %q, not %q", what, pair[0], pair[1])
				}
			}
			if f.Size != len(tt.in) {
				t.Errorf("size %d", f.Size)
			}
		})
	}
}

func TestScanRefusesInTheContractsOrder(t *testing.T) {
	nested := func(n int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	}
	const silent = "silent"
	for name, tt := range map[string]struct {
		in   string
		code int
		id   string
	}{
		"nothing":                                {"", CodeParse, "null"},
		"white space":                            {" \n", CodeParse, "null"},
		"a byte order mark":                      {"\xef\xbb\xbf{}", CodeParse, "null"},
		"text behind the object":                 {`{"jsonrpc":"2.0","method":"m"} {}`, CodeParse, "null"},
		"a cut frame":                            {`{"jsonrpc":"2.0","id":1,"method":"m"`, CodeParse, "null"},
		"a trailing comma":                       {`{"jsonrpc":"2.0",}`, CodeParse, "null"},
		"a control character in a string":        {"{\"a\":\"\n\"}", CodeParse, "null"},
		"a number that is none":                  {`{"a":01}`, CodeParse, "null"},
		"a bad escape far inside":                {`{"jsonrpc":"2.0","method":"m","params":[{"a":["\x"]}]}`, CodeParse, "null"},
		"not JSON although the id is bad too":    {`{"id":{},"id":{},"a":tru}`, CodeParse, "null"},
		"one level too deep":                     {nested(MaxDepth), CodeParse, "null"},
		"a batch":                                {`[{"jsonrpc":"2.0","id":1,"method":"m"}]`, InvalidRequest, "null"},
		"an empty batch":                         {`[]`, InvalidRequest, "null"},
		"a broken batch":                         {`[`, CodeParse, "null"},
		"a string":                               {`"x"`, InvalidRequest, "null"},
		"a repeated id":                          {`{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}`, InvalidRequest, "null"},
		"a repeated method in other escapes":     {`{"jsonrpc":"2.0","id":1,"method":"m","meth\u006fd":"n"}`, InvalidRequest, "null"},
		"a repeated unknown member":              {`{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2}`, InvalidRequest, "null"},
		"a repeated unknown member in escapes":   {`{"jsonrpc":"2.0","id":1,"method":"m","x":1,"\u0078":2}`, InvalidRequest, "null"},
		"a repeated member of a notification":    {`{"jsonrpc":"2.0","method":"m","params":1,"params":1}`, InvalidRequest, "null"},
		"a repeated member of an answer":         {`{"id":1,"result":1,"result":1}`, InvalidRequest, "null"},
		"an id that is an object":                {`{"jsonrpc":"2.0","id":{},"method":"m"}`, InvalidRequest, "null"},
		"an id that is a boolean":                {`{"jsonrpc":"2.0","id":true,"method":"m"}`, InvalidRequest, "null"},
		"an id with a fraction":                  {`{"jsonrpc":"2.0","id":1.0,"method":"m"}`, InvalidRequest, "null"},
		"an id with an exponent":                 {`{"jsonrpc":"2.0","id":1e3,"method":"m"}`, InvalidRequest, "null"},
		"a bad id before a bad version":          {`{"jsonrpc":"1.0","id":[],"method":"m"}`, InvalidRequest, "null"},
		"no method":                              {`{"jsonrpc":"2.0","id":1}`, InvalidRequest, "null"},
		"a method that is no string":             {`{"jsonrpc":"2.0","id":1,"method":5}`, InvalidRequest, "null"},
		"a method that is no string, and result": {`{"jsonrpc":"2.0","id":1,"method":5,"result":1}`, InvalidRequest, "null"},
		"no version":                             {`{"id":1,"method":"m"}`, InvalidRequest, "null"},
		"a version that is no string":            {`{"jsonrpc":2.0,"id":1,"method":"m"}`, InvalidRequest, "null"},
		"another version":                        {`{"jsonrpc":"1.0","id":"a","method":"m"}`, InvalidRequest, `"a"`},
		"an answer that is none of ours":         {`{"jsonrpc":"2.0","id":"abc","result":1}`, InvalidRequest, "null"},
		"a notification without a method":        {`{"jsonrpc":"2.0"}`, InvalidRequest, silent},
		"an empty object":                        {`{}`, InvalidRequest, silent},
		"a notification of another version":      {`{"jsonrpc":"1.0","method":"m"}`, InvalidRequest, silent},
		"a result without an id":                 {`{"jsonrpc":"2.0","result":1}`, InvalidRequest, silent},
	} {
		t.Run(name, func(t *testing.T) {
			_, fault := Scan([]byte(tt.in))
			if fault == nil {
				t.Fatal("it was let pass")
			}
			if fault.Error() != fault.Message || strings.ContainsAny(fault.Message, "\n\x1b") {
				t.Errorf("told as %q", fault.Error())
			}
			if fault.Code != tt.code {
				t.Errorf("code %d, not %d: %s", fault.Code, tt.code, fault.Message)
			}
			answer := AppendFault(nil, fault)
			if tt.id == silent {
				if len(answer) > 0 {
					t.Errorf("answered %s", answer)
				}
				return
			}
			f, _ := Scan(answer) // whose id may be none of ours
			if f.Kind != Response || string(f.ID.Raw()) != tt.id {
				t.Errorf("answered %s, want id %s", answer, tt.id)
			}
			if e := ParseError(f.Error); e.Code != tt.code || e.Message == "" {
				t.Errorf("answered %v", e)
			}
		})
	}
	if _, fault := Scan([]byte(nested(MaxDepth - 1))); fault != nil {
		t.Errorf("%d levels were refused: %v", MaxDepth, fault)
	}
}

func TestTheRequestLimitStandsBetweenTheIDAndTheVersion(t *testing.T) {
	const limit = 100
	pad := func(head string, size int) string {
		open := head + `,"params":"`
		return open + strings.Repeat("x", size-len(open)-2) + `"}`
	}
	for name, tt := range map[string]struct {
		in     string
		code   int // 0: let pass
		id     string
		silent bool
	}{
		"exactly the limit":                        {in: pad(`{"jsonrpc":"2.0","id":1,"method":"m"`, limit)},
		"one byte over":                            {in: pad(`{"jsonrpc":"2.0","id":1,"method":"m"`, limit+1), code: Overload, id: "1"},
		"before the version":                       {in: pad(`{"jsonrpc":"1.0","id":1,"method":"m"`, limit+1), code: Overload, id: "1"},
		"after the type of the id":                 {in: pad(`{"jsonrpc":"2.0","id":[],"method":"m"`, limit+1), code: InvalidRequest, id: "null"},
		"a notification is dropped":                {in: pad(`{"jsonrpc":"2.0","method":"m"`, limit+1), code: Overload, silent: true},
		"a response is not held to it":             {in: pad(`{"jsonrpc":"2.0","id":1,"result":1`, limit+1)},
		"without a string method it is no request": {in: pad(`{"jsonrpc":"2.0","id":1,"method":7`, limit+1), code: InvalidRequest, id: "null"},
	} {
		t.Run(name, func(t *testing.T) {
			f, fault := ScanLimit([]byte(tt.in), limit)
			if tt.code == 0 {
				if fault != nil {
					t.Fatalf("refused: %+v", fault)
				}
				return
			}
			if fault == nil || fault.Code != tt.code || fault.Silent() != tt.silent || !tt.silent && string(fault.ID.Raw()) != tt.id {
				t.Fatalf("fault %+v", fault)
			}
			if tt.code == Overload {
				if f.Method != "m" {
					t.Errorf("the method of what is refused is not known: %q", f.Method)
				}
				want := `"data":{"scope":"request_bytes","limit":100,"used":101,"size":101}`
				if got := string(fault.Err().AppendObject(nil)); !strings.Contains(got, want) || !strings.Contains(got, `\"m\"`) {
					t.Errorf("the error is %s", got)
				}
			}
		})
	}
}

// A copy of it would be bytes that nobody pays for, and its echo could be longer than anything else that the pod says.
func TestAnIDThatNoAnswerCouldHoldIsNotEchoed(t *testing.T) {
	at := `"` + strings.Repeat("x", MaxIDBytes-2) + `"`
	over := `"` + strings.Repeat("x", MaxIDBytes-1) + `"`
	if _, fault := Scan([]byte(`{"jsonrpc":"2.0","method":"m","id":` + at + `}`)); fault != nil {
		t.Errorf("an id of %d bytes was refused: %v", len(at), fault)
	}
	for _, rest := range []string{`"method":"m"`, `"result":1`, `"x":1`} {
		f, fault := Scan([]byte(`{"jsonrpc":"2.0",` + rest + `,"id":` + over + `}`))
		if fault == nil || fault.Code != InvalidRequest || !fault.ID.IsNull() || !f.ID.IsZero() || fault.Silent() {
			t.Errorf("%s with an id of %d bytes gave %+v", rest, len(over), fault)
		}
	}
}

// What is decoded of an envelope does not grow with the frame.
func TestWhatIsCopiedOfAnEnvelopeIsBounded(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	escaped := strings.Repeat(`\u0078`, 1<<17)
	for name, frame := range map[string]string{
		"method":          `{"jsonrpc":"2.0","id":1,"method":"` + huge + `"}`,
		"escaped method":  `{"jsonrpc":"2.0","id":1,"method":"` + escaped + `"}`,
		"version":         `{"jsonrpc":"` + huge + `","id":1,"method":"m"}`,
		"id":              `{"jsonrpc":"2.0","id":"` + huge + `","method":"m"}`,
		"number":          `{"jsonrpc":"2.0","id":` + strings.Repeat("1", 1<<20) + `,"method":"m"}`,
		"name":            `{"jsonrpc":"2.0","id":1,"method":"m","` + huge + `":1}`,
		"escaped name":    `{"jsonrpc":"2.0","id":1,"method":"m","` + escaped + `":1}`,
		"repeated method": `{"jsonrpc":"2.0","id":1,"method":"m","` + escaped + `":1,"` + escaped + `":1}`,
	} {
		text := []byte(frame)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, fault := Scan(text)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: %d bytes are allocated for a frame of %d", name, n, len(text))
		}
		if (fault == nil) != (name == "method" || name == "escaped method") {
			t.Errorf("%s: %+v", name, fault)
		}
	}
}

func TestALongMethodKeepsItsBeginning(t *testing.T) {
	for _, test := range []struct{ raw, begins string }{
		{strings.Repeat("m", 300), strings.Repeat("m", 256)},
		{strings.Repeat("m", 255) + `\u0041` + strings.Repeat("z", 300), strings.Repeat("m", 255) + "A"},
		{strings.Repeat("m", 255) + `\"` + strings.Repeat("z", 300), strings.Repeat("m", 255) + `"`},
		{strings.Repeat(`\\`, 200), strings.Repeat(`\`, 128)},
		{strings.Repeat("m", 256), strings.Repeat("m", 256)},
	} {
		f, fault := Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + test.raw + `"}`))
		if fault != nil || f.Method != test.begins || f.Kind != Request {
			t.Errorf("%.40s…: %+v %q", test.raw, fault, f.Method)
		}
	}
}

func TestTheNamesOfAnEnvelopeAreBounded(t *testing.T) {
	at, over := strings.Repeat("n", MaxNameBytes-2), strings.Repeat("n", MaxNameBytes-1)
	if _, fault := Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","` + at + `":1}`)); fault != nil {
		t.Errorf("a name of %d bytes was refused: %v", MaxNameBytes, fault)
	}
	if _, fault := Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","` + over + `":1}`)); fault == nil || fault.Code != InvalidRequest || !fault.ID.IsNull() {
		t.Errorf("a name of %d bytes gave %+v", MaxNameBytes+1, fault)
	}
	if _, fault := Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"` + over + `":1}}`)); fault != nil {
		t.Errorf("what is only carried was judged: %v", fault)
	}
}

func TestAnEnvelopeHasABoundedNumberOfMembers(t *testing.T) {
	envelope := func(more int) []byte {
		var b strings.Builder
		b.WriteString(`{"jsonrpc":"2.0","id":1,"method":"m"`)
		for n := range more {
			b.WriteString(`,"x` + strings.Repeat("y", n) + `":0`)
		}
		b.WriteString("}")
		return []byte(b.String())
	}
	if _, fault := Scan(envelope(MaxMembers - 3)); fault != nil {
		t.Errorf("%d members were refused: %v", MaxMembers, fault)
	}
	if _, fault := Scan(envelope(MaxMembers - 2)); fault == nil || fault.Code != InvalidRequest || !fault.ID.IsNull() {
		t.Errorf("%d members gave %+v", MaxMembers+1, fault)
	}
}

func TestTheRangesAreTheBytesOfTheFrame(t *testing.T) {
	frame := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\u003c","n":9007199254740993}}`)
	f, fault := Scan(frame)
	if fault != nil {
		t.Fatal(fault)
	}
	if cap(f.Params) != len(f.Params) {
		t.Error("an append to params would write into the frame")
	}
	frame[strings.Index(string(frame), "u003c")-1] = '/'
	if !strings.Contains(string(f.Params), "/u003c") {
		t.Error("params are a copy")
	}
	if string(f.ID.Raw()) != "1" || f.Method != "m" {
		t.Error("id and method are no copies")
	}
}

func TestKindsHaveNames(t *testing.T) {
	for kind, want := range map[Kind]string{Request: "request", Notification: "notification", Response: "response", Invalid: "invalid"} {
		if kind.String() != want {
			t.Errorf("%d is %q", kind, kind)
		}
	}
}
