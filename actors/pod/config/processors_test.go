package config

import "testing"

func TestANumberOfProcessorsIsADecimalInItsRange(t *testing.T) {
	ok := checks["processors-or-empty"].ok
	for text, want := range map[string]bool{
		"": true, "1": true, "1.5": true, "0.01": true, "4096": true, ".5": true,
		"0": false, "0.001": false, "4097": false, "-1": false, "1e3": false, "0x10": false, "Inf": false, "NaN": false, "1,5": false, "150%": false, " 1": false,
	} {
		if got := ok(text); got != want {
			t.Errorf("%q is taken: %v", text, got)
		}
	}
}
