package store

import (
	"os"
	"sync/atomic"
	"testing"
)

// BenchmarkOpened is a session that is opened and whose turn ends: two records written, by 64 at a time.
func BenchmarkOpened(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var n atomic.Int64
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d := durable(int(n.Add(1)))
			l, err := s.Create(b.Context(), d)
			if err == nil {
				err = s.Put(b.Context(), l, d)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sessions/s")
}

// BenchmarkStart is a pod that starts with so many records.
func BenchmarkStart(b *testing.B) {
	const records = 5000
	dir := b.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for n := range records {
		text, err := encode(stored{durable(n), 1, ""})
		if err == nil {
			err = os.WriteFile(s.path(nameOf(id(n))), text, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(dir, Options{})
		if err != nil || s.Figures().Records != records {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
