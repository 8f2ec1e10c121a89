package provider

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestALineOfStderrShowsNoCredentials(t *testing.T) {
	var b bytes.Buffer
	log := Config{Log: slog.New(slog.NewTextHandler(&b, nil))}.log("shop").With("more", 1).WithGroup("g")
	log.Warn("stderr", "line", "connect failed: token=hunter2hunter2 at host", "skipped_bytes", 7)
	if got := b.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "connect failed: token=***") || !strings.Contains(got, "server=shop") || !strings.Contains(got, "skipped_bytes=7") || !strings.Contains(got, "more=1") {
		t.Error(got)
	}
}
