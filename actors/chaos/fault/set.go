package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Set are the faults of a run with their rates, and how often each was injected. It may be used from any goroutine.
type Set struct {
	rates map[string]float64
	order map[Place][]Fault

	mu       sync.Mutex
	injected map[string]int64
	skipped  map[string]string
}

// Parse reads a list of names, each with or without `:RATE` or `*FACTOR` (of its default rate), or `all`, or `none`.
func Parse(list string) (*Set, error) {
	s := &Set{rates: map[string]float64{}, order: map[Place][]Fault{}, injected: map[string]int64{}, skipped: map[string]string{}}
	table := Table()
	for part := range strings.SplitSeq(list, ",") {
		name, of, err := parseRate(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		switch at := slices.IndexFunc(table, func(f Fault) bool { return f.Name == name }); {
		case name == "none" && list == "none":
		case name == "all":
			for _, f := range table {
				if _, named := s.rates[f.Name]; !named {
					s.rates[f.Name] = of(f.Rate)
				}
			}
		case at < 0:
			return nil, fmt.Errorf("there is no fault %q; there are %s, all and none", name, strings.Join(Names(), ", "))
		default:
			s.rates[name] = of(table[at].Rate)
		}
	}
	for _, f := range table {
		if rate, on := s.rates[f.Name]; on {
			f.Rate = rate
			for _, place := range f.Places {
				s.order[place] = append(s.order[place], f)
			}
		}
	}
	return s, nil
}

// parseRate reads NAME, NAME:RATE or NAME*FACTOR; of makes the rate from the default one.
func parseRate(part string) (name string, of func(usual float64) float64, err error) {
	if name, rate, rated := strings.Cut(part, ":"); rated {
		r, err := strconv.ParseFloat(rate, 64)
		if err != nil || !(r >= 0 && r <= 1) {
			return "", nil, fmt.Errorf("%q is no rate: a chance from 0 to 1 follows the colon", rate)
		}
		return name, func(float64) float64 { return r }, nil
	}
	name, factor, factored := strings.Cut(part, "*")
	if !factored {
		return name, func(usual float64) float64 { return usual }, nil
	}
	f, err := strconv.ParseFloat(factor, 64)
	if err != nil || !(f >= 0 && f <= 1000) {
		return "", nil, fmt.Errorf("%q is no factor: a number from 0 to 1000 follows the star", factor)
	}
	return name, func(usual float64) float64 { return min(1, usual*f) }, nil
}

// Names are those of all faults.
func Names() (names []string) {
	for _, f := range Table() {
		names = append(names, f.Name)
	}
	return names
}

// On reports whether a fault belongs to the run.
func (s *Set) On(name string) bool { _, on := s.rates[name]; return on }

// Draw decides at one opportunity: the name of at most one fault, "" for none.
func (s *Set) Draw(r *rand.Rand, place Place) string { return s.DrawFor(r, place, 1) }

// DrawFor is Draw where an opportunity stands for more or less than one: half a second of a rate by the second.
func (s *Set) DrawFor(r *rand.Rand, place Place, share float64) string {
	dice := r.Float64()
	for _, f := range s.order[place] {
		if dice < f.Rate*share {
			return f.Name
		}
		dice -= f.Rate * share
	}
	return ""
}

// Injected counts a fault that was really done; variant says which way, "" for the only one.
func (s *Set) Injected(name, variant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.injected[name]++
	if variant != "" {
		s.injected[name+"/"+variant]++
	}
}

// Skip notes why a fault cannot be done in this run.
func (s *Set) Skip(name, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped[name] = why
}

// Count is what became of one fault.
type Count struct {
	Name     string           `json:"name"`
	Attacks  string           `json:"attacks"`
	Rate     float64          `json:"rate"`
	Injected int64            `json:"injected"`
	Variants map[string]int64 `json:"variants,omitzero"`
	Skipped  string           `json:"skipped,omitzero"`
}

// Counts are the faults of the run in the order of the table.
func (s *Set) Counts() []Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := []Count{}
	for _, f := range Table() {
		rate, on := s.rates[f.Name]
		if !on {
			continue
		}
		c := Count{Name: f.Name, Attacks: string(f.Attacks), Rate: rate, Injected: s.injected[f.Name], Skipped: s.skipped[f.Name]}
		for name, n := range s.injected {
			if variant, of := strings.CutPrefix(name, f.Name+"/"); of {
				if c.Variants == nil {
					c.Variants = map[string]int64{}
				}
				c.Variants[variant] = n
			}
		}
		counts = append(counts, c)
	}
	return counts
}
