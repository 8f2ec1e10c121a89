package pod

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkWhereTheTimeGoes prints the CPU time of one call with 1 KiB each way, by the part of the pod that spent it. The
// caller and the extension are told apart and shown too. It takes the process's one CPU profile for itself.
func BenchmarkWhereTheTimeGoes(b *testing.B) {
	x := startBench(b, 1<<10, 1<<10, 20)
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		b.Fatal(err)
	}
	calls := 0
	for b.Loop() {
		x.pod.call(x.results)
		calls++
	}
	pprof.StopCPUProfile()
	stacks, err := readProfile(&profile)
	if err != nil {
		b.Fatal(err)
	}
	spent, system, pod := map[string]time.Duration{}, map[string]time.Duration{}, time.Duration(0)
	for _, s := range stacks {
		hop := hopOf(s.frames)
		spent[hop] += s.cpu
		if len(s.frames) > 0 && isSystemCall(s.frames[0]) {
			system[hop] += s.cpu
		}
		if hop != load {
			pod += s.cpu
		}
	}
	names := make([]string, 0, len(spent))
	for name := range spent {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, c string) int { return cmp.Compare(spent[c], spent[a]) })
	perCall := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / float64(calls) }
	var table strings.Builder
	fmt.Fprintf(&table, "\nCPU µs a call over %d calls; the pod's share in percent; of it in system calls\n", calls)
	for _, name := range names {
		share := ""
		if name != load {
			share = fmt.Sprintf("%.1f %%", 100*float64(spent[name])/float64(pod))
		}
		fmt.Fprintf(&table, "%-34s %7.1f  %7s  %7.1f\n", name, perCall(spent[name]), share, perCall(system[name]))
	}
	fmt.Print(table.String()) // b.Log would cut it
	b.ReportMetric(perCall(pod), "pod-cpu-µs/call")
	b.ReportMetric(perCall(spent[load]), "load-cpu-µs/call")
}

const (
	load      = "(caller and extension)"
	scheduler = "runtime: scheduling, timers"
	collector = "runtime: garbage collection"
)

// hops are the parts of the pod by the packages that make them. A sample belongs to the innermost frame that has one: what a
// hop spends in memmove, in the allocator or in the kernel is its own.
var hops = []struct{ prefix, hop string }{
	{"github.com/acpod/acpod/actors/facade.", "facade"},
	{"github.com/acpod/acpod/runtime/door.", "facade"},
	{"github.com/acpod/acpod/actors/capability", "capability"},
	{"github.com/acpod/acpod/actors/audit.", "audit and log"},
	{"log/slog", "audit and log"},
	{"github.com/acpod/acpod/actors/tunnel.", "tunnel"},
	{"github.com/acpod/acpod/actors/connection.", "connection"},
	{"github.com/acpod/acpod/actors/session", "session"},
	{"github.com/acpod/acpod/runtime/kernel.", "kernel (protoactor with it)"},
	{"github.com/asynkron/protoactor-go", "kernel (protoactor with it)"},
	{"github.com/acpod/acpod/protocol/", "json: our scanners"},
	{"encoding/json", "json: decoding and schema"},
	{"github.com/kaptinlin/", "json: decoding and schema"},
	{"github.com/lxzan/gws", "gws"},
	{"net/http", "net/http"},
	{"net/textproto", "net/http"},
	{"mime", "net/http"},
}

// loadFrames are functions that only the caller and the extension have on their stacks.
var loadFrames = []string{"actors/pod.(*caller).", "actors/pod.(*extension).", "net/http.(*Transport)", "net/http.(*persistConn)", "net/http.(*Client)"}

func hopOf(frames []string) string {
	gwsLoop, ours := false, false
	for _, f := range frames {
		if slices.ContainsFunc(loadFrames, func(l string) bool { return strings.Contains(f, l) }) {
			return load
		}
		gwsLoop = gwsLoop || strings.HasSuffix(f, "gws.(*Conn).ReadLoop")
		ours = ours || strings.Contains(f, "actors/connection.")
	}
	if gwsLoop && !ours {
		return load // the extension's
	}
	for _, f := range frames {
		for _, h := range hops {
			if strings.HasPrefix(f, h.prefix) {
				return h.hop
			}
		}
		if strings.Contains(f, "gcBgMarkWorker") || strings.Contains(f, "bgsweep") || strings.Contains(f, "bgscavenge") {
			return collector
		}
	}
	if slices.ContainsFunc(frames, func(f string) bool { return !strings.HasPrefix(f, "runtime.") && !strings.HasPrefix(f, "internal/") }) {
		return "other"
	}
	return scheduler
}

func isSystemCall(frame string) bool {
	return strings.HasPrefix(frame, "internal/runtime/syscall") || strings.HasPrefix(frame, "runtime.futex") || strings.HasPrefix(frame, "runtime.write1")
}

// stack is what one sample of a CPU profile says, the innermost frame first.
type stack struct {
	frames []string
	cpu    time.Duration
}

// readProfile reads of a CPU profile, a gzipped protocol buffer, what the table needs: profile.proto of pprof has samples in
// field 2, locations in 4, functions in 5 and strings in 6.
func readProfile(r io.Reader) ([]stack, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(unzipped)
	if err != nil {
		return nil, err
	}
	type sample struct{ locations, values []uint64 }
	var samples []sample
	lines, names, texts := map[uint64][]uint64{}, map[uint64]uint64{}, []string{}
	err = fields(raw, func(field int, _ uint64, body []byte) error {
		switch field {
		case 2:
			var s sample
			samples = append(samples, s)
			at := &samples[len(samples)-1]
			return fields(body, func(field int, v uint64, body []byte) error {
				switch field {
				case 1:
					return numbers(&at.locations, v, body)
				case 2:
					return numbers(&at.values, v, body)
				}
				return nil
			})
		case 4:
			var id uint64
			var functions []uint64
			err := fields(body, func(field int, v uint64, body []byte) error {
				switch field {
				case 1:
					id = v
				case 4:
					return fields(body, func(field int, v uint64, _ []byte) error {
						if field == 1 {
							functions = append(functions, v)
						}
						return nil
					})
				}
				return nil
			})
			lines[id] = functions
			return err
		case 5:
			var id, name uint64
			err := fields(body, func(field int, v uint64, _ []byte) error {
				switch field {
				case 1:
					id = v
				case 2:
					name = v
				}
				return nil
			})
			names[id] = name
			return err
		case 6:
			texts = append(texts, string(body))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	stacks := make([]stack, 0, len(samples))
	for _, s := range samples {
		out := stack{}
		for _, location := range s.locations {
			for _, function := range lines[location] {
				if at := names[function]; at < uint64(len(texts)) {
					out.frames = append(out.frames, texts[at])
				}
			}
		}
		if len(s.values) == 2 { // samples, nanoseconds
			out.cpu = time.Duration(s.values[1])
		}
		stacks = append(stacks, out)
	}
	return stacks, nil
}

// fields gives the fields of a protocol buffer message: numbers as v, strings and messages as body.
func fields(raw []byte, each func(field int, v uint64, body []byte) error) error {
	for len(raw) > 0 {
		tag, n := binary.Uvarint(raw)
		if n <= 0 {
			return io.ErrUnexpectedEOF
		}
		raw = raw[n:]
		v, n := binary.Uvarint(raw)
		if n <= 0 || tag&7 != 0 && tag&7 != 2 {
			return fmt.Errorf("a field of wire type %d", tag&7)
		}
		raw = raw[n:]
		var body []byte
		if tag&7 == 2 {
			if v > uint64(len(raw)) {
				return io.ErrUnexpectedEOF
			}
			body, raw = raw[:v], raw[v:]
		}
		if err := each(int(tag>>3), v, body); err != nil {
			return err
		}
	}
	return nil
}

// numbers appends one number, or all of a packed list.
func numbers(to *[]uint64, v uint64, packed []byte) error {
	if packed == nil {
		*to = append(*to, v)
		return nil
	}
	for len(packed) > 0 {
		v, n := binary.Uvarint(packed)
		if n <= 0 {
			return io.ErrUnexpectedEOF
		}
		*to, packed = append(*to, v), packed[n:]
	}
	return nil
}
