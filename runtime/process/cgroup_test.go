package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeCgroup is a folder that looks like a cgroup. What the kernel does when its files are written is not in it.
func fakeCgroup(t *testing.T, controllers string) (dir string, g *Cgroups) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), `app-acpod\x2dpod[1].service`) // as systemd writes it
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": "", "cgroup.procs": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leaf := filepath.Join(dir, cgroupLeaf)
	if err := os.Mkdir(leaf, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, &Cgroups{dir: dir, limits: Limits{Memory: 1 << 30, Processors: 1.5, Processes: 100}, remove: os.RemoveAll}
}

func contains(t *testing.T, want string, path ...string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(path...)); err != nil || string(text) != want {
		t.Errorf("%s has %q, %v; want %q", filepath.Join(path[1:]...), text, err, want)
	}
}

func TestThePodMakesRoomForTheCgroupsOfItsChildren(t *testing.T) {
	dir, g := fakeCgroup(t, "cpuset cpu memory pids\n")
	self := os.Getpid()
	own, err := readStat(self)
	if err != nil {
		t.Fatal(err)
	}
	gone, mine := fmt.Sprintf("%s-%d-%d-1", cgroupPrefix, self, own.start-1), fmt.Sprintf("%s-%d-%d-1", cgroupPrefix, self, own.start)
	for _, name := range []string{gone, mine, "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.open(self); err != nil {
		t.Fatal(err)
	}
	contains(t, fmt.Sprint(self), dir, cgroupLeaf, "cgroup.procs")
	contains(t, "+cpu +memory +pids", dir, "cgroup.subtree_control")
	if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
		t.Error("what a pod left that is gone is still there")
	}
	for _, name := range []string{mine, "other"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheLimitsOfAChildAreWrittenAndGoWithIt(t *testing.T) {
	dir, g := fakeCgroup(t, "cpu memory pids")
	if err := g.open(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, g.owner+"-1")
	if _, err := g.make(); err == nil || !strings.Contains(err.Error(), "cgroup") {
		t.Errorf("without the kernel's files: %v", err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("a cgroup that could not be bounded was left")
	}
	one := &cgroup{dir: name, limits: g.limits, remove: g.remove}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"memory.max": "", "cpu.max": "", "pids.max": "", "cgroup.kill": "", "cgroup.procs": "12\n7\n1\n", "memory.events": "low 0\noom 2\noom_kill 1\n",
	} {
		if err := os.WriteFile(filepath.Join(name, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.bound(); err != nil {
		t.Fatal(err)
	}
	contains(t, "1073741824", name, "memory.max")
	contains(t, "150000 100000", name, "cpu.max")
	contains(t, "100", name, "pids.max")
	if got := fmt.Sprint(one.members()); got != "[12 7]" {
		t.Errorf("its members are %s", got)
	}
	if !one.overran() {
		t.Error("that the kernel killed in it is not seen")
	}
	one.kill()
	contains(t, "1", name, "cgroup.kill")
	one.close()
	if _, err := os.Stat(name); err == nil {
		t.Error("it is left behind")
	}
}

func TestACgroupThatMayNotBeDividedIsAnErrorThatSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		controllers string
		breaks      func(dir string) error
		want        string
	}{
		"a controller is missing": {"cpu pids", func(string) error { return nil }, "memory"},
		"it is none":              {"cpu memory pids", func(dir string) error { return os.Remove(filepath.Join(dir, "cgroup.controllers")) }, "no such file"},
		"it cannot be entered":    {"cpu memory pids", func(dir string) error { return os.Remove(filepath.Join(dir, cgroupLeaf, "cgroup.procs")) }, "entered"},
		"it cannot be divided":    {"cpu memory pids", func(dir string) error { return os.Remove(filepath.Join(dir, "cgroup.subtree_control")) }, "divided"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, g := fakeCgroup(t, c.controllers)
			if err := c.breaks(dir); err != nil {
				t.Fatal(err)
			}
			if err := g.open(os.Getpid()); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestTheCgroupOfAProcessIsFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cgroup")
	for text, want := range map[string]string{
		"0::/a/b\n":           "/mount/a/b",
		"4:memory:/x\n0::/\n": "/mount",
		"4:memory:/x\n":       "",
		"0::/../outside\n":    "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ownCgroup("/mount", file); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestWithoutLimitsThereIsNoCgroup(t *testing.T) {
	if g, err := OpenCgroups(Limits{}); g != nil || err != nil {
		t.Errorf("%v, %v", g, err)
	}
	var none *Cgroups
	one, err := none.make()
	if one != nil || err != nil || one.members() != nil || one.overran() {
		t.Errorf("%v, %v", one, err)
	}
	one.kill()
	one.close()
}
