package pod

import (
	"io"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/acpod/acpod/actors/pod/config"
)

func TestTheRoomForAPodIsTheSmallestOfMachineAndCgroups(t *testing.T) {
	const meminfo = "MemTotal:       24682968 kB\nMemFree:          1000 kB\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, row := range map[string]struct {
		files fstest.MapFS
		want  room
	}{
		"a machine":                 {fstest.MapFS{"proc/meminfo": file(meminfo)}, room{"the machine", 24682968 << 10}},
		"no proc":                   {fstest.MapFS{}, room{"the machine", 0}},
		"nonsense":                  {fstest.MapFS{"proc/meminfo": file("MemTotal: lots\n")}, room{"the machine", 0}},
		"a cgroup without a limit":  {fstest.MapFS{"proc/meminfo": file(meminfo), "proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, room{"the machine", 24682968 << 10}},
		"its own limit":             {fstest.MapFS{"proc/meminfo": file(meminfo), "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("1000\n")}, room{"the cgroup", 1000}},
		"that of one above":         {fstest.MapFS{"proc/meminfo": file(meminfo), "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("5000\n"), "sys/fs/cgroup/a/memory.max": file("4000\n")}, room{"the cgroup", 4000}},
		"the root of a container":   {fstest.MapFS{"proc/meminfo": file(meminfo), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("3000\n")}, room{"the cgroup", 3000}},
		"more than the machine has": {fstest.MapFS{"proc/meminfo": file("MemTotal: 1 kB\n"), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("3000\n")}, room{"the machine", 1024}},
		"the older cgroups":         {fstest.MapFS{"proc/meminfo": file(meminfo), "proc/self/cgroup": file("5:memory:/x\n"), "sys/fs/cgroup/memory.max": file("3000\n")}, room{"the machine", 24682968 << 10}},
	} {
		if got := roomIn(row.files); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestAPromiseThatDoesNotFitIsWarnedOf(t *testing.T) {
	p := promise{parts: []summand{{"all", "here", 900}}, garbage: 100, program: 50}
	for name, row := range map[string]struct {
		limit int64
		room  room
		says  []string
	}{
		"it fits":               {math.MaxInt64, room{"the machine", 1050}, nil},
		"nothing is known":      {math.MaxInt64, room{"the machine", 0}, nil},
		"a limit that holds it": {1000, room{"the machine", 1050}, nil},
		"a limit too low":       {999, room{"the machine", 1050}, []string{"GOMEMLIMIT (999 bytes) is less than the worst case of the limits (1000 bytes"}},
		"a machine too small":   {math.MaxInt64, room{"the machine", 1049}, []string{"the machine has 1049 bytes, less than the worst case of the limits (1050 bytes)"}},
		"both":                  {1, room{"the cgroup", 1}, []string{"GOMEMLIMIT", "the cgroup has 1 bytes"}},
	} {
		got := memoryWarnings(p, row.limit, row.room)
		if len(got) != len(row.says) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, want := range row.says {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

func TestTheRuntimeIsHeldToThePromiseUnlessTheOperatorSaidOtherwise(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	c := config.Default()
	p := worstCase(&c, assumed)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	for name, row := range map[string]struct {
		environ []string
		want    int64
		from    string
	}{
		"none":  {[]string{"HOME=/"}, p.limit(), "worst case"},
		"empty": {[]string{"GOMEMLIMIT="}, p.limit(), "worst case"},
		"given": {[]string{"GOMEMLIMIT=1GiB"}, 1 << 40, "environment"},
		"off":   {[]string{"GOMEMLIMIT=off"}, 1 << 40, "environment"},
	} {
		debug.SetMemoryLimit(1 << 40) // as the runtime has read it
		limit, from := keepMemory(log, p, row.environ)
		if got := debug.SetMemoryLimit(-1); got != row.want || limit != row.want || from != row.from {
			t.Errorf("%s: the limit is %d, told as %d from %s", name, got, limit, from)
		}
	}
}
