package jsonrpc

// Version is what jsonrpc says in every frame.
const Version = "2.0"

const head = `{"jsonrpc":"` + Version + `",`

// AppendRequest appends a request. params is spliced as it is and must be one JSON
// text; nil leaves the member out.
func AppendRequest(dst []byte, id ID, method string, params []byte) []byte {
	dst = append(dst, head+`"id":`...)
	dst = id.Append(dst)
	dst = append(dst, ',')
	return appendCall(dst, method, params)
}

// AppendRequestHead appends what stands before the params of a request; one closing brace stands behind them. For params
// that are written apart.
func AppendRequestHead(dst []byte, id ID, method string) []byte {
	dst = append(dst, head+`"id":`...)
	dst = id.Append(dst)
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	return append(dst, `,"params":`...)
}

// AppendNotification appends a notification; params as in AppendRequest.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	dst = append(dst, head...)
	return appendCall(dst, method, params)
}

// AppendResult appends a successful answer. result is spliced; nil becomes null,
// because an answer has a result.
func AppendResult(dst []byte, id ID, result []byte) []byte {
	dst = append(dst, head+`"id":`...)
	dst = id.Append(dst)
	dst = append(dst, `,"result":`...)
	if result == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, result...)
	}
	return append(dst, '}')
}

// AppendError appends a failed answer. An error that a peer sent (ParseError) leaves
// as it came, to the byte.
func AppendError(dst []byte, id ID, e *Error) []byte {
	dst = append(dst, head+`"id":`...)
	dst = id.Append(dst)
	dst = append(dst, `,"error":`...)
	dst = e.AppendObject(dst)
	return append(dst, '}')
}

// AppendRawError is AppendError for an error object that is only carried.
func AppendRawError(dst []byte, id ID, object []byte) []byte {
	dst = append(dst, head+`"id":`...)
	dst = id.Append(dst)
	dst = append(dst, `,"error":`...)
	dst = append(dst, object...)
	return append(dst, '}')
}

// AppendFault appends the answer that f asks for, and nothing when f is silent.
func AppendFault(dst []byte, f *Fault) []byte {
	if f.Silent() {
		return dst
	}
	return AppendError(dst, f.ID, f.Err())
}

func appendCall(dst []byte, method string, params []byte) []byte {
	dst = append(dst, `"method":`...)
	dst = AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}
