//go:build !race

package store

import (
	"runtime"
	"testing"
)

// Each record has a client of its own here, which costs most.
func TestAnIndexTakesNoMoreMemoryThanItIsCharged(t *testing.T) {
	const records = 20_000
	before := heap()
	x := newIndex(Options{}.withDefaults())
	for n := range records {
		x.put(entry{name: nameOf(id(n)), memory: EntryBytes}, "laptop", [32]byte{byte(n), byte(n >> 8)})
	}
	if used := (heap() - before) / records; used > EntryBytes {
		t.Errorf("a record takes %d bytes, and is charged %d", used, EntryBytes)
	}
	runtime.KeepAlive(x)

	before = heap()
	s, charged := NewMemory(Options{}), int64(0)
	for n := range records {
		d := durable(n)
		d.Client = [32]byte{byte(n), byte(n >> 8)}
		d.Additional = []string{string(make([]byte, 100)), string(make([]byte, 200))}
		charged += memoryOf(&d)
		create(t, s, d)
	}
	if used := heap() - before; used > charged {
		t.Errorf("%d records take %d bytes, and are charged %d", records, used, charged)
	}
	runtime.KeepAlive(s)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
