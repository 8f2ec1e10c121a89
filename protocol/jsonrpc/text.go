package jsonrpc

import (
	"bytes"
	"encoding/json/jsontext"
	"strconv"
	"unicode/utf8"
)

// AppendString appends s as a JSON string literal. What is no UTF-8 in s becomes
// U+FFFD, because it may come from a peer and must not spoil our own frame.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error only reports what was replaced
	return dst
}

// String decodes a JSON string literal: raw as Scan, Object or Elements gave it.
// It answers false for every other kind of value. A lone surrogate and a byte that
// is no UTF-8 decode to U+FFFD.
func String(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	body := raw[1 : len(raw)-1]
	if bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) {
		return string(body), true
	}
	text, _ := jsontext.AppendUnquote(make([]byte, 0, len(body)), raw) // syntax was checked when raw was found
	return string(text), true
}

// Int decodes an integer literal that fits 64 bits; a fraction or an exponent is
// no integer here, as in ACP.
func Int(raw []byte) (int64, bool) {
	if !isInteger(raw) || len(raw) > 20 { // the longest that fits
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// Bool decodes true and false.
func Bool(raw []byte) (value, ok bool) {
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// IsNull reports whether raw is the literal null.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// IsObject reports whether raw, a well-formed value without space around it, is an object.
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// IsArray reports whether raw, a well-formed value without space around it, is an array.
func IsArray(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

// Valid reports whether b is one JSON text with nothing but white space around it.
// It judges syntax and depth only, as Scan does.
func Valid(b []byte) bool {
	_, v := onlyValue(b)
	return v == wellFormed
}

// onlyValue trims the white space around the one value in b and checks its syntax.
func onlyValue(b []byte) ([]byte, verdict) {
	start := skipSpace(b, 0)
	end, v := skipValue(b, start, 0)
	if v != wellFormed {
		return nil, v
	}
	if skipSpace(b, end) != len(b) {
		return nil, malformed
	}
	return b[start:end], wellFormed
}

// isInteger reports whether raw is a number literal without fraction and exponent.
func isInteger(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false
	}
	end, v := skipNumber(raw, 0)
	return v == wellFormed && end == len(raw) && !bytes.ContainsAny(raw, ".eE")
}

// sameName reports whether the two name literals, quotes included, decode to the
// same name.
func sameName(a, b []byte) bool {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Equal(a, b)
	}
	x, _ := String(a)
	y, _ := String(b)
	return x == y
}

// named reports whether the name literal decodes to name.
func named(literal []byte, name string) bool {
	body := literal[1 : len(literal)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body) == name
	}
	decoded, _ := String(literal)
	return decoded == name
}
