package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestRecordsOfSuspendedSessionsAreBoundedByWhatTheyHold(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	kerneltest.Do(t, root, func(c *kernel.Ctx) {
		v := &supervisor{s: &Sessions{cfg: Config{}.withDefaults()}, c: c, records: map[string]*record{}}
		const each, n = 1 << 20, 100
		for i := range n {
			rec := &record{id: fmt.Sprint(i), cwd: strings.Repeat("d", each), updated: time.Unix(int64(i), 0)}
			v.records[rec.id] = rec
			v.sleeps(rec)
			v.limitAsleep()
			if v.asleepBytes > RecordsBytes {
				t.Fatalf("after %d: %d bytes", i+1, v.asleepBytes)
			}
		}
		if v.asleep != len(v.records) || v.asleep != RecordsBytes/(each+RecordBytes) {
			t.Errorf("%d records, counted %d", len(v.records), v.asleep)
		}
		if v.records["0"] != nil || v.records[fmt.Sprint(n-1)] == nil {
			t.Error("the oldest go first")
		}
		for _, rec := range v.records {
			v.wakes(rec)
		}
		if v.asleep != 0 || v.asleepBytes != 0 {
			t.Errorf("%d records with %d bytes are left", v.asleep, v.asleepBytes)
		}
	})
}
