package pod

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// keepMemory holds the runtime to the promise: without a limit of the operator's it gets the one that the promise is made of, so that
// the collector works against it and not against a multiple of what lives. It gives the limit that counts, and whose it is.
func keepMemory(log *slog.Logger, p promise, environ []string) (limit int64, from string) {
	limit, from = debug.SetMemoryLimit(-1), "environment"
	if given, set := lookup(environ, "GOMEMLIMIT"); !set || given == "" {
		limit, from = p.limit(), "worst case"
		debug.SetMemoryLimit(limit)
	}
	for _, part := range p.parts {
		log.Debug("worst case of memory", "part", part.name, "bytes", part.n, "from", part.from)
	}
	log.Debug("worst case of memory", "part", "garbage", "bytes", p.garbage, "from", "an eighth of the above, at least 16 MiB")
	log.Debug("worst case of memory", "part", "program", "bytes", p.program, "from", "the program's file")
	return limit, from
}

// operatorsLimit is GOMEMLIMIT, as the runtime has read it; the largest number when there is none.
func operatorsLimit() int64 {
	if os.Getenv("GOMEMLIMIT") == "" {
		return math.MaxInt64 // what the runtime has may be ours
	}
	return debug.SetMemoryLimit(-1)
}

func lookup(environ []string, name string) (string, bool) {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// memoryWarnings compare the promise with what the runtime and the machine allow.
func memoryWarnings(p promise, runtimeLimit int64, room room) []string {
	var out []string
	if runtimeLimit != math.MaxInt64 && runtimeLimit < p.limit() {
		out = append(out, fmt.Sprintf("GOMEMLIMIT (%d bytes) is less than the worst case of the limits (%d bytes without the program): the collector may work all the time before they are reached, and the limit is passed; lower [limits] or raise it",
			runtimeLimit, p.limit()))
	}
	if room.bytes > 0 && room.bytes < p.total() {
		out = append(out, fmt.Sprintf("%s has %d bytes, less than the worst case of the limits (%d bytes): the pod may be killed before they are reached; lower limits.pod_bytes, limits.connections and limits.sessions",
			room.of, room.bytes, p.total()))
	}
	return out
}

// room is the memory that there is.
type room struct {
	of    string // "the machine" or "the cgroup"
	bytes int64  // 0 = not known
}

// roomIn reads how much memory this process may have: the machine's, or less by a cgroup (version 2) that it is in. root is "/".
func roomIn(root fs.FS) room {
	r := room{of: "the machine"}
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		r.bytes = memTotal(string(text))
	}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return r
	}
	for line := range strings.Lines(string(text)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for at := group; ; at = path.Dir(at) { // the smallest of all above counts
			if at == "." {
				at = ""
			}
			limit, err := fs.ReadFile(root, path.Join("sys/fs/cgroup", at, "memory.max"))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil && bad == nil && (r.bytes == 0 || n < r.bytes) {
				r = room{"the cgroup", n}
			}
			if at == "" {
				break
			}
		}
	}
	return r
}

// memTotal finds the machine's memory in /proc/meminfo; 0 when it is not there.
func memTotal(text string) int64 {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil || kib < 0 || kib > math.MaxInt64>>10 {
			return 0
		}
		return kib << 10
	}
	return 0
}

// here is the file system that roomIn reads.
func here() fs.FS { return os.DirFS("/") }
