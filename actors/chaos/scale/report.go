package scale

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Report is what was measured. Sizes are in bytes unless their name says otherwise.
type Report struct {
	Started      time.Time          `json:"started"`
	Machine      Machine            `json:"machine"`
	Asked        Asked              `json:"asked"`
	Pod          *Side              `json:"pod"`
	LeaveSeconds float64            `json:"leave_seconds"` // until all had left and the pod was at rest
	Echo         *Side              `json:"echo"`
	EchoMessage  int                `json:"echo_message_bytes"`
	Ratios       map[string]float64 `json:"ratios"` // pod over echo
	Invariants   []Invariant        `json:"invariants"`
}

// Asked is what had to be measured.
type Asked struct {
	Extensions int     `json:"extensions"`
	Rate       int     `json:"rate_per_s"`
	Seconds    float64 `json:"seconds"`
	Payload    int     `json:"payload_bytes"`
	Callers    int     `json:"callers"`
	Parallel   int     `json:"parallel"`
}

// Machine is where.
type Machine struct {
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Memory int64  `json:"memory_bytes"`
	System string `json:"system"`
	Go     string `json:"go"`
}

func thisMachine() Machine {
	m := Machine{CPU: runtime.GOARCH, CPUs: runtime.NumCPU(), System: runtime.GOOS, Go: runtime.Version()}
	if model := fieldOf("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = strings.TrimLeft(model, ": \t")
	}
	kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimLeft(fieldOf("/proc/meminfo", "MemTotal:"), " "), " kB"), 10, 64)
	m.Memory = kib << 10
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System = "Linux " + string(bytes.TrimSpace(release))
	}
	return m
}

func fieldOf(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// ownProcessor is the processor time that this process used.
func ownProcessor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The names of the ratios, in the order of the table.
const (
	ratioIdleRSS  = "idle_rss_per_connection"
	ratioIdleHeap = "idle_heap_and_stacks_per_connection"
	ratioLoadRSS  = "load_rss_per_connection"
	ratioP50      = "latency_p50"
	ratioP99      = "latency_p99"
	ratioCPU      = "cpu_per_call"
)

func ratios(p, e *Side) map[string]float64 {
	memory := func(c PerConnection) float64 { return c.Heap + c.Stacks }
	return map[string]float64{
		ratioIdleRSS:  over(p.Idle.PerConnection.RSS, e.Idle.PerConnection.RSS),
		ratioIdleHeap: over(memory(p.Idle.PerConnection), memory(e.Idle.PerConnection)),
		ratioLoadRSS:  over(p.Load.PerConnection.RSS, e.Load.PerConnection.RSS),
		ratioP50:      over(p.Load.Latency.P50, e.Load.Latency.P50),
		ratioP99:      over(p.Load.Latency.P99, e.Load.Latency.P99),
		ratioCPU:      over(p.Load.CPU, e.Load.CPU),
	}
}

// over is 0 where there is nothing to compare with: too small a run for the resolution of /proc.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// Broken are the invariants that did not hold.
func (r *Report) Broken() (broken []Invariant) {
	for _, i := range r.Invariants {
		if !i.Held {
			broken = append(broken, i)
		}
	}
	return broken
}
