package fault

import (
	"slices"
	"strings"
	"testing"
)

func TestAListOfFaultsIsReadOrItsFirstMistakeIsNamed(t *testing.T) {
	for _, test := range []struct {
		list  string
		on    []string
		wrong string
	}{
		{"none", nil, ""},
		{"drop", []string{"drop"}, ""},
		{"drop, abort:0.5", []string{"drop", "abort"}, ""},
		{"all", Names(), ""},
		{"all:0.5,drop:1", Names(), ""},
		{"dorp", nil, `there is no fault "dorp"`},
		{"", nil, `there is no fault ""`},
		{"drop,none", nil, `there is no fault "none"`},
		{"drop:2", nil, "no rate"},
		{"drop:-0.1", nil, "no rate"},
		{"drop:often", nil, "no rate"},
		{"drop:NaN", nil, "no rate"},
		{"drop*3", []string{"drop"}, ""},
		{"drop*-1", nil, "no factor"},
		{"drop*NaN", nil, "no factor"},
	} {
		s, err := Parse(test.list)
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%q: %v, want %q", test.list, err, test.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", test.list, err)
			continue
		}
		for _, name := range Names() {
			if s.On(name) != slices.Contains(test.on, name) {
				t.Errorf("%q: %s is on: %v", test.list, name, s.On(name))
			}
		}
	}
	if s, err := Parse("all*0.5,drop*1000"); err != nil || s.rates["drop"] != 1 || s.rates["abort"] != 0.01 {
		t.Errorf("rates are %v (%v)", s.rates, err)
	}
	if s, err := Parse("all:0.5,drop:1"); err != nil || s.rates["drop"] != 1 || s.rates["abort"] != 0.5 {
		t.Errorf("rates are %v (%v)", s.rates, err)
	}
}

func TestOneSeedDrawsTheSameAndAnotherDoesNot(t *testing.T) {
	draw := func(seed uint64, who string, actor int) (names []string) {
		s, err := Parse("all")
		if err != nil {
			t.Fatal(err)
		}
		for number := range 500 {
			names = append(names, s.Draw(NewDice(seed).Of(who, actor, number), Life))
		}
		return names
	}
	first := draw(1, "life", 3)
	if !slices.Equal(first, draw(1, "life", 3)) {
		t.Error("the same seed drew something else")
	}
	for _, other := range [][]string{draw(2, "life", 3), draw(1, "life", 4), draw(1, "answer", 3)} {
		if slices.Equal(first, other) {
			t.Error("another seed, actor or decision drew the same")
		}
	}
}

func TestFaultsAreDrawnAtTheirRates(t *testing.T) {
	s, err := Parse("drop:0.2,flood:0.1,abort:0.5")
	if err != nil {
		t.Fatal(err)
	}
	const n = 20000
	counts := map[string]int{}
	dice := NewDice(9)
	for number := range n {
		counts[s.Draw(dice.Of("life", 0, number), Life)]++
	}
	for name, want := range map[string]int{"drop": n / 5, "flood": n / 10, "abort": 0} {
		if got := counts[name]; got < want*9/10 || got > want*11/10 {
			t.Errorf("%s was drawn %d times of %d, want about %d", name, got, n, want)
		}
	}
}

func TestEveryFaultIsDrawnSomewhereAndAttacksSomething(t *testing.T) {
	for _, f := range Table() {
		if f.Does == "" || f.Attacks == "" || len(f.Places) == 0 || f.Rate <= 0 {
			t.Errorf("%s is not complete: %+v", f.Name, f)
		}
		s, err := Parse(f.Name + ":1")
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range f.Places {
			if got := s.Draw(NewDice(1).Of("x", 0, 0), place); got != f.Name {
				t.Errorf("%s at a rate of 1 was not drawn at %s, but %q", f.Name, place, got)
			}
		}
	}
}

func TestWhatWasInjectedIsCountedByVariant(t *testing.T) {
	s, err := Parse("drop,clock")
	if err != nil {
		t.Fatal(err)
	}
	s.Injected("drop", "rst")
	s.Injected("drop", "rst")
	s.Injected("drop", "fin")
	s.Skip("clock", "not here")
	counts := s.Counts()
	if len(counts) != 2 || counts[0].Injected != 3 || counts[0].Variants["rst"] != 2 || counts[0].Variants["fin"] != 1 || counts[1].Skipped != "not here" || counts[1].Injected != 0 {
		t.Errorf("counts are %+v", counts)
	}
}
