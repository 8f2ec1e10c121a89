package pod

import (
	"bufio"
	"bytes"
	"context"
	"strconv"
	"strings"
)

// Metrics are the samples of /metrics by name and labels as they stand there: `acpod_refused_total{kind="connection",scope="malformed"}`.
type Metrics map[string]float64

// Metrics reads /metrics.
func (p *Pod) Metrics(ctx context.Context) (Metrics, error) {
	text, err := p.MetricsText(ctx)
	if err != nil {
		return nil, err
	}
	return ParseMetrics(text), nil
}

// MetricsText is the answer of /metrics as it came.
func (p *Pod) MetricsText(ctx context.Context) ([]byte, error) { return p.get(ctx, "/metrics") }

// ParseMetrics reads the text of /metrics.
func ParseMetrics(text []byte) Metrics {
	m := Metrics{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at <= 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			m[line[:at]] = value
		}
	}
	return m
}

// Sum adds up all samples of a name, whatever their labels; with labels given as `kind="x"`, those that have all of them.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for key, value := range m {
		bare, rest, _ := strings.Cut(key, "{")
		if bare != name {
			continue
		}
		has := true
		for _, label := range labels {
			has = has && strings.Contains(","+strings.TrimSuffix(rest, "}")+",", ","+label+",")
		}
		if has {
			sum += value
		}
	}
	return sum
}

// Has reports whether there is a sample of that name.
func (m Metrics) Has(name string) bool {
	for key := range m {
		if bare, _, _ := strings.Cut(key, "{"); bare == name {
			return true
		}
	}
	return false
}

// RSS is the resident memory of the pod in bytes, by /metrics.
func (m Metrics) RSS() int64 { return int64(m.Sum("process_resident_memory_bytes")) }

// Goroutines of the pod.
func (m Metrics) Goroutines() int { return int(m.Sum("go_goroutines")) }

// FDs are the open file descriptors of the pod.
func (m Metrics) FDs() int { return int(m.Sum("process_open_fds")) }
