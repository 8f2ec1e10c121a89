package pins

import (
	"testing"

	"github.com/acpod/acpod/actors/capability"
)

// BenchmarkChanged is what a search asks of each of 500 tools, and Admit of a list that is known.
func BenchmarkChanged(b *testing.B) {
	p, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	list := tools(names("tool", 500)...)
	p.Admit(files, list)
	b.Run("Changed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, t := range list {
				if p.Changed(files, t) != nil {
					b.Fatal("it changed")
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(list)), "ns/tool")
	})
	b.Run("Admit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Admit(files, list)
		}
	})
	b.Run("First", func(b *testing.B) {
		for b.Loop() {
			one, err := New(Config{})
			if err != nil {
				b.Fatal(err)
			}
			one.Admit(capability.PinOwner{Server: "s"}, list)
		}
	})
}
