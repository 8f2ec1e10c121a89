package process

// Born tells which process started that one, and when, in the kernel's clock ticks since boot: a pid and its start are one process, a pid
// alone is whoever has it now. It fails when there is no such process. From any goroutine.
func Born(pid int) (parent int, start uint64, err error) {
	s, err := readStat(pid)
	return s.ppid, s.start, err
}
