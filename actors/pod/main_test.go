package pod

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/runtime/process"
)

// TestMain lets the test binary be the guardian that a pod of this test starts, and a server of its mcp.json.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "guardian" {
		os.Exit(process.RunGuardian(os.Stdin))
	}
	if os.Getenv(stdioServerVariable) != "" {
		os.Exit(stdioServer())
	}
	goleak.VerifyTestMain(m)
}
