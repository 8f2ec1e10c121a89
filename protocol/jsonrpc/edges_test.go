package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestTheEdgesOfALineTellWhatItWas(t *testing.T) {
	long := strings.Repeat("x", 4*edgeBytes)
	for line, want := range map[string]struct {
		kind Kind
		id   string
	}{
		`{"jsonrpc":"2.0","id":7,"result":"` + long + `"}`:                                 {Response, "7"},
		`{"jsonrpc":"2.0","id":7,"error":{"data":"` + long + `"}}`:                         {Response, "7"},
		` { "jsonrpc" : "2.0" , "id" : "7" , "result" : ["` + long + `"] } `:               {Response, `"7"`},
		`{"result":{"a":"` + long + `"},"id":7,"jsonrpc":"2.0"}`:                           {Response, "7"},
		`{"result":{"a":"` + long + `"},"id":7}`:                                           {Response, "7"},
		`{"jsonrpc":"2.0","result":[{"a":"` + long + `","id":9}],"id":7}`:                  {Response, "7"},
		`{"jsonrpc":"2.0","id":7,"result":[{"a":"` + long + `","id":9}]}`:                  {Response, "7"},
		`{"jsonrpc":"2.0","id":"q","method":"fs/write","params":"` + long + `"}`:           {Request, `"q"`},
		`{"params":"` + long + `","method":"fs/write","id":null}`:                          {Request, "null"},
		`{"jsonrpc":"2.0","method":"session/update","params":"` + long + `"}`:              {Notification, ""},
		`{"jsonrpc":"2.0","method":"session/update","params":{"a":"` + long + `","id":7}}`: {Notification, ""},
		`{"result":[{"a":"` + long + `","id":9}],"jsonrpc":"2.0"}`:                         {Notification, ""},
		`{"id":1.5,"result":"` + long + `"}`:                                               {Notification, ""},
		long:                                                                               {Notification, ""},
		`{` + long:                                                                         {Notification, ""},
		`{"id":7,"re` + long:                                                               {Response, "7"}, // cut off; the request that it names gets no other answer
		`["id",7,` + long + `]`:                                                            {Notification, ""},
	} {
		e := NewEdges(iotest.OneByteReader(strings.NewReader("\n\r\nshort\n"+line+"\n")), 100)
		if _, err := io.Copy(io.Discard, e); err != nil {
			t.Fatal(err)
		}
		kind, id, _ := e.Take(1).Envelope()
		if kind != want.kind || string(id.Raw()) != want.id {
			t.Errorf("%.60q is %v %s, want %v %s", line, kind, id, want.kind, want.id)
		}
		if len(e.kept) != 0 {
			t.Errorf("%d edges are left", len(e.kept))
		}
	}
}

// FuzzEdges holds the count of lines to that of the line reader, and the guess about a line to what a scan of it says.
func FuzzEdges(f *testing.F) {
	f.Add([]byte("a\n\n{\"id\":1,\"result\":2}\r\n\r\n{\"result\":[],\"id\":\"x\"}"), 7)
	f.Add([]byte(`{"result":"a,","id":3}`+"\n"+`{"id":3,"result":"a,"}`), 3)
	f.Add([]byte(`{"a":{"id":4},"id":5,"result":1}`+"\r\r\n"), 1)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		max := 1 + (size%200+200)%200
		e := NewEdges(iotest.OneByteReader(bytes.NewReader(in)), 0)
		lines := NewLineReader(e, max)
		for n := int64(0); ; n++ {
			line, err := lines.Next()
			_, long := errors.AsType[*LineTooLong](err)
			if err != nil && !long {
				if len(e.kept) != 0 {
					t.Fatalf("%d lines were counted that never came", len(e.kept))
				}
				return
			}
			at := e.Take(n)
			if long {
				continue
			}
			if !bytes.Equal(at.Head, line) && !bytes.Equal(bytes.TrimSuffix(at.Head, []byte("\r")), line) {
				t.Fatalf("line %d is %q, its head %q", n, line, at.Head)
			}
			frame, fault := Scan(line)
			if kind, id, _ := at.Envelope(); fault == nil && kind != Notification && (kind != frame.Kind || id.Key() != frame.ID.Key()) {
				t.Fatalf("%q is %v %v, guessed as %v %v", line, frame.Kind, frame.ID, kind, id)
			}
		}
	})
}
