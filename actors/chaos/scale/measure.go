package scale

import (
	"context"
	"fmt"
	"time"
)

// Side is what was measured of one server.
type Side struct {
	Baseline Figures `json:"baseline"` // before anybody connected
	Ramp     Ramp    `json:"ramp"`
	Idle     Idle    `json:"idle"`
	Load     Load    `json:"load"`
	PeakRSS  int64   `json:"peak_rss_bytes"` // of its whole life
}

// Ramp is how the clients came.
type Ramp struct {
	Seconds float64 `json:"seconds"`
	Ready   Latency `json:"ready"` // of one client, from its SYN until it was ready
	CPU     float64 `json:"cpu_us_per_connection"`
}

// Idle is the server with all clients connected and nothing to do.
type Idle struct {
	Figures
	PerConnection PerConnection `json:"per_connection"`
	CPU           float64       `json:"cpu_cores"` // keep-alives and the like
}

// PerConnection is the growth over the baseline, for each connection.
type PerConnection struct {
	RSS        float64 `json:"rss_bytes"`
	Heap       float64 `json:"heap_bytes"`
	Stacks     float64 `json:"stack_bytes"`
	Goroutines float64 `json:"goroutines"`
}

func (f Figures) over(baseline Figures, n int) PerConnection {
	share := func(now, before int64) float64 { return float64(now-before) / float64(n) }
	return PerConnection{share(f.RSS, baseline.RSS), share(f.Heap, baseline.Heap), share(f.Stacks, baseline.Stacks), share(f.Goroutines, baseline.Goroutines)}
}

// Load is the server while calls are made.
type Load struct {
	Calls    int                 `json:"calls"`
	Answered uint64              `json:"answered"`
	Failed   map[string]Failures `json:"failed"` // by kind
	Rate     float64             `json:"calls_per_s"`
	Latency  Latency             `json:"latency"`  // from the time at which a call was due
	Service  Latency             `json:"service"`  // from the time at which it was made
	Lateness Latency             `json:"lateness"` // of the harness, between the two

	CPU           float64       `json:"cpu_us_per_call"`
	RSSMean       int64         `json:"rss_mean_bytes"`
	RSSPeak       int64         `json:"rss_peak_bytes"`
	After         Figures       `json:"after"`          // when the calls have ended
	PerConnection PerConnection `json:"per_connection"` // the same over the baseline, with the largest resident memory of the load
	ToServer      float64       `json:"socket_bytes_to_server_per_call"`
	ToClient      float64       `json:"socket_bytes_to_client_per_call"`
	HarnessCPU    float64       `json:"harness_cpu_us_per_call"`
	OthersCPU     float64       `json:"others_cpu_cores"` // what else ran on the machine meanwhile
}

// measure takes a server through ramp, idleness and load, and leaves the clients connected.
func measure(ctx context.Context, o *Options, s subject, during func(ctx context.Context)) (side *Side, all fleet, err error) {
	side = &Side{}
	if side.Baseline, err = look(ctx, s); err != nil {
		return nil, nil, err
	}
	begun, used := time.Now(), processorOf(s.pid())
	all, took, err := assemble(ctx, o.Extensions, o.Parallel, s.dial, func(n int) {
		if n%1000 == 0 || n == o.Extensions {
			o.Progress(fmt.Sprintf("%s: %d connected after %.1f s", s.name(), n, time.Since(begun).Seconds()))
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	defer func() {
		if err != nil {
			all.abandon()
		}
	}()
	side.Ramp = Ramp{time.Since(begun).Seconds(), took.Latency(), micros(processorOf(s.pid())-used, o.Extensions)}
	if side.Idle, err = o.idle(ctx, s, side.Baseline); err != nil {
		return nil, nil, err
	}
	o.Progress(fmt.Sprintf("%s: idle, %.1f KiB of heap and stacks a connection", s.name(), (side.Idle.PerConnection.Heap+side.Idle.PerConnection.Stacks)/1024))
	if side.Load, err = o.load(ctx, s, all, side.Baseline, during); err != nil {
		return nil, nil, err
	}
	side.PeakRSS = peakOf(s.pid())
	o.Progress(fmt.Sprintf("%s: %d of %d calls answered, p50 %.2f ms, p99 %.2f ms", s.name(), side.Load.Answered, side.Load.Calls, side.Load.Latency.P50, side.Load.Latency.P99))
	return side, all, nil
}

func (o *Options) idle(ctx context.Context, s subject, baseline Figures) (i Idle, err error) {
	used, begun := processorOf(s.pid()), time.Now()
	select {
	case <-time.After(o.Settle):
	case <-ctx.Done():
		return i, context.Cause(ctx)
	}
	i.CPU = (processorOf(s.pid()) - used).Seconds() / time.Since(begun).Seconds()
	if i.Figures, err = look(ctx, s); err == nil {
		i.PerConnection = i.Figures.over(baseline, o.Extensions)
	}
	return i, err
}

func (o *Options) load(ctx context.Context, s subject, all fleet, baseline Figures, during func(ctx context.Context)) (l Load, err error) {
	in, out := all.traffic()
	rss := watchResident(s.pid())
	used, ours, everybody, begun := processorOf(s.pid()), ownProcessor(), machineProcessor(), time.Now()
	aside := make(chan struct{})
	go func() {
		defer close(aside)
		during(ctx)
	}()
	l.Calls = o.calls()
	p := pace(ctx, l.Calls, o.Rate, o.Callers, kernelSleep, func(ctx context.Context, i int) error { return all[i%len(all)].call(ctx, i) })
	used, ours, everybody = processorOf(s.pid())-used, ownProcessor()-ours, machineProcessor()-everybody
	l.CPU, l.HarnessCPU, l.OthersCPU = micros(used, l.Calls), micros(ours, l.Calls), (everybody-used-ours).Seconds()/time.Since(begun).Seconds()
	l.RSSMean, l.RSSPeak = rss.end()
	<-aside
	if ctx.Err() != nil {
		return l, context.Cause(ctx)
	}
	l.Answered, l.Failed, l.Rate = p.latency.n, p.failed, float64(p.latency.n)/p.elapsed.Seconds()
	l.Latency, l.Service, l.Lateness = p.latency.Latency(), p.service.Latency(), p.lateness.Latency()
	nowIn, nowOut := all.traffic()
	l.ToServer, l.ToClient = float64(nowOut-out)/float64(l.Calls), float64(nowIn-in)/float64(l.Calls)
	if l.After, err = look(ctx, s); err != nil {
		return l, err
	}
	largest := l.After
	largest.RSS = l.RSSPeak
	l.PerConnection = largest.over(baseline, o.Extensions)
	return l, nil
}

func micros(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }
