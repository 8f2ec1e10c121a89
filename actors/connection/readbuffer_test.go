package connection

import (
	"bytes"
	"testing"
)

func TestAFrameThatComesInPaysForTheBufferThatItIsReadInto(t *testing.T) {
	for n, want := range map[int64]int64{
		0: 0, 1: 1, 4096: 4096, 4097: 8192, 8188: 8192, 8189: 16384,
		128<<10 - 4: 128 << 10, 128<<10 - 3: 256 << 10, 256<<10 - 4: 256 << 10, 256<<10 - 3: 256<<10 - 3, 8 << 20: 8 << 20,
	} {
		if got := readBuffer(n); got != want {
			t.Errorf("a frame of %d bytes pays %d, want %d", n, got, want)
		}
	}
}

func TestAMessageIsKeptInASliceThatCostsWhatItHolds(t *testing.T) {
	for name, row := range map[string]struct {
		length, room int
		pooled, same bool
	}{
		"a small one goes back":        {4 << 10, 4 << 10, true, false},
		"one that fills its buffer":    {60 << 10, 64 << 10, false, true},
		"one that fills it by half":    {33 << 10, 64 << 10, false, false},
		"one with a buffer of its own": {8 << 20, 8<<20 + 4, false, true},
	} {
		data := make([]byte, row.length, row.room)
		data[0] = 'x'
		kept, pooled := take(data)
		if pooled != row.pooled || !bytes.Equal(kept, data) || (&kept[0] == &data[0]) != row.same || cap(kept) > len(kept)+len(kept)/4+8 {
			t.Errorf("%s: %d of %d bytes, pooled %v, the same %v", name, len(kept), cap(kept), pooled, &kept[0] == &data[0])
		}
	}
}
