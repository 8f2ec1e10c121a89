package clientcheck

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// sideBySide is how many runs go on at once: they wait for each other's clients far more than they compute.
const sideBySide = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
