package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written like "8MiB". A bare number is bytes. Only the binary units are taken: "8MB" means
// 8,000,000 to one reader and 8,388,608 to the next, and a limit must not be a matter of taste.
type Size int64

// The units of a [Size].
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

var sizeUnits = []struct {
	name  string
	bytes Size
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

// UnmarshalText reads "8MiB", "64 KiB", "512B" or "512".
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), Size(1)
	for _, u := range sizeUnits {
		if head, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimRight(head, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || strings.HasPrefix(number, "+"):
		return fmt.Errorf("%q is no size; write a whole number with B, KiB, MiB, GiB or TiB", text)
	case n < 0:
		return fmt.Errorf("%q is negative", text)
	case n > math.MaxInt64/int64(unit):
		return fmt.Errorf("%q does not fit into 64 bits", text)
	}
	*s = Size(n) * unit
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String uses the largest unit that divides the size.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// formatDuration is time.Duration's own notation without its empty tail: "4h", not "4h0m0s".
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
