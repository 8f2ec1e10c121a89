package jsonrpc

// A Kind says what a frame is.
type Kind uint8

// The kinds of frames. Invalid is a frame that is none of the others; the Fault
// beside it says what is answered.
const (
	Invalid Kind = iota
	Request
	Notification
	Response
)

func (k Kind) String() string {
	switch k {
	case Request:
		return "request"
	case Notification:
		return "notification"
	case Response:
		return "response"
	}
	return "invalid"
}

// A Frame is one message, found in the bytes that it came in. The byte slices are
// ranges of those bytes, nil when the member is absent.
type Frame struct {
	Kind      Kind
	ID        ID     // zero when absent
	Method    string // decoded; "" also when absent, see HasMethod
	HasMethod bool   // there is a member method and it is a string
	Version   string // what jsonrpc says, decoded
	Params    []byte
	Result    []byte // of a response; nil when Error is not
	Error     []byte // of a response
	Size      int    // bytes of the whole frame
	Variant   string // a member that differs from one with a meaning in case alone; it has none itself
}

// A Fault says why a frame is refused and what is owed for it.
type Fault struct {
	Code    int
	Message string
	ID      ID   // the id to answer with; null where no id can be trusted
	Kind    Kind // what the frame would have been; for a Notification nothing is answered
	Size    int  // for Overload: the frame's size in bytes
	Limit   int  // for Overload: the limit in bytes
}

// Silent reports that no answer is owed: the frame had no id, or is an answer that
// nobody can be told about. It is still counted.
func (f *Fault) Silent() bool { return f.Kind == Notification || f.Kind == Response }

// Err is the error to answer with.
func (f *Fault) Err() *Error {
	if f.Code == Overload {
		return &Error{Code: f.Code, Message: f.Message, Data: OverloadData{
			Scope: ScopeRequestBytes, Limit: int64(f.Limit), Used: int64(f.Size), Size: int64(f.Size),
		}}
	}
	return &Error{Code: f.Code, Message: f.Message}
}

// Error makes a Fault an error, for whoever only logs it.
func (f *Fault) Error() string { return f.Message }
