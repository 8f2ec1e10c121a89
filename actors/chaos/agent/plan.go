package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Plan is what every process of a run reads when it starts. As a text it has one entry a line, in any order:
//
//	seed 7                     where chance begins; each process has its own numbers, by its ordinal
//	line 16777216              limits.agent_line_bytes of the pod, for `oversize`
//	delay 2s                   how late `late` is
//	secret NAME                a variable of the environment that `stderr` prints, besides the token
//	agentcrash:new 0.1         a strike and its rate, from 0 to 1; without one it is 1. Each strikes once a process at most
//
// A # begins a comment.
type Plan struct {
	Seed    uint64
	Line    int
	Delay   time.Duration
	Secrets []string
	Strikes []Planned
}

// Planned is a strike that a process suffers with that probability.
type Planned struct {
	Strike
	Rate float64
}

// ParsePlan reads the text of a plan.
func ParsePlan(text string) (Plan, error) {
	p := Plan{Line: 16 << 20, Delay: 2 * time.Second}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := p.entry(words); err != nil {
			return Plan{}, fmt.Errorf("line %d of the plan: %w", number, err)
		}
	}
	return p, nil
}

func (p *Plan) entry(words []string) (err error) {
	if len(words) > 2 {
		return fmt.Errorf("%d words are too many", len(words))
	}
	value := ""
	if len(words) == 2 {
		value = words[1]
	}
	switch words[0] {
	case "seed":
		p.Seed, err = strconv.ParseUint(value, 10, 64)
	case "line":
		if p.Line, err = strconv.Atoi(value); err == nil && (p.Line < 1 || p.Line > 1<<30) {
			err = fmt.Errorf("a line of %d bytes is out of range", p.Line)
		}
	case "delay":
		if p.Delay, err = time.ParseDuration(value); err == nil && (p.Delay < 0 || p.Delay > time.Hour) {
			err = fmt.Errorf("a delay of %v is out of range", p.Delay)
		}
	case "secret":
		p.Secrets = append(p.Secrets, value)
	default:
		return p.strike(words[0], value)
	}
	return err
}

func (p *Plan) strike(text, rate string) error {
	s, err := ParseStrike(text)
	if err != nil {
		return err
	}
	planned := Planned{s, 1}
	if rate != "" {
		if planned.Rate, err = strconv.ParseFloat(rate, 64); err != nil || !(planned.Rate >= 0 && planned.Rate <= 1) {
			return fmt.Errorf("%q is no rate from 0 to 1", rate)
		}
	}
	p.Strikes = append(p.Strikes, planned)
	return nil
}

// String is the text that ParsePlan reads.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nline %d\ndelay %s\n", p.Seed, p.Line, p.Delay)
	for _, name := range p.Secrets {
		fmt.Fprintf(&b, "secret %s\n", name)
	}
	for _, s := range p.Strikes {
		fmt.Fprintf(&b, "%s %s\n", s.Strike, strconv.FormatFloat(s.Rate, 'g', -1, 64))
	}
	return b.String()
}

// Write replaces the plan at path at once: a process that starts meanwhile reads the one or the other.
func (p Plan) Write(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".plan-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone already when all went well
	if _, err = file.WriteString(p.String()); err != nil {
		_ = file.Close()
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// ReadPlan reads the plan at path.
func ReadPlan(path string) (Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Plan{}, err
	}
	return ParsePlan(string(text))
}
