package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// figures are what was measured of one program. Times are in milliseconds, memory in MiB.
type figures struct {
	program
	init, first, cold series // at full speed: start to first `next`, first event; CPU time of both
	initCPU           series // the part of cold that init took
	quotaFirst        series // the first event with the CPU share of 128 MB
	quota             series // init at full speed and the first event with the share, as on Lambda
	throttled         series // both with the share
	warm              series // later events, each under a key it has not seen
	warmCPU, knownCPU series // CPU time of a later event: as in warm, and under one key
	peak              series
	size              float64
}

// rounds says how often what is repeated.
type rounds struct {
	cold      int // starts at full speed, and again with the share of 128 MB
	throttled int // starts with the share throughout
	warm      int // processes that get many events
	events    int // for each of them
}

// warmUp is how many events a process gets before its later ones are measured.
const warmUp = 100

// measureSpeed lets the programs take turns, each round in another order.
func measureSpeed(ctx context.Context, list []program, s *standIns, q quota, events *requests, n rounds, progress io.Writer) ([]*figures, error) {
	all := make([]*figures, len(list))
	for i, p := range list {
		info, err := os.Stat(p.file)
		if err != nil {
			return nil, fmt.Errorf("finding the size of %s: %w", p.name, err)
		}
		all[i] = &figures{program: p, size: mebibytes(info.Size())}
	}
	turn := func(what string, times int, do func(*figures) error) error {
		for round := range times {
			for i := range all {
				f := all[(i+round)%len(all)]
				if err := do(f); err != nil {
					return err
				}
			}
			fmt.Fprintf(progress, "\r%s %d/%d ", what, round+1, times)
		}
		if times > 0 {
			fmt.Fprintln(progress)
		}
		return nil
	}
	if err := turn("starts", n.cold, func(f *figures) error {
		if err := f.start(ctx, events.next()); err != nil {
			return err
		}
		return f.startLimited(ctx, events.next(), q, false)
	}); err != nil {
		return nil, err
	}
	if err := turn("starts with the share of 128 MB throughout", n.throttled, func(f *figures) error {
		return f.startLimited(ctx, events.next(), q, true)
	}); err != nil {
		return nil, err
	}
	s.setPause(answerPause)
	defer s.setPause(0)
	return all, turn("later events", n.warm, func(f *figures) error { return f.later(ctx, events, n.events) })
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
func mebibytes(n int64) float64            { return float64(n) / (1 << 20) }

func add(s *series, v float64) { *s = append(*s, v) }

// start measures a start and the first event at full speed.
func (f *figures) start(ctx context.Context, event []byte) error {
	p, err := launch(f.name, f.command, f.env)
	if err != nil {
		return err
	}
	defer p.stop()
	init, err := p.ready(ctx)
	if err != nil {
		return err
	}
	before, err := p.settledCPU()
	if err != nil {
		return err
	}
	body, first, err := p.invoke(ctx, event)
	if err != nil {
		return err
	}
	if err := f.check(body); err != nil {
		return err
	}
	cpu, err := p.settledCPU()
	if err != nil {
		return err
	}
	add(&f.init, milliseconds(init))
	add(&f.first, milliseconds(first))
	add(&f.initCPU, milliseconds(before))
	add(&f.cold, milliseconds(cpu))
	return nil
}

// startLimited measures a start and the first event, the latter or both with the CPU share of 128 MB.
func (f *figures) startLimited(ctx context.Context, event []byte, q quota, throughout bool) error {
	p, err := launch(f.name, f.command, f.env)
	if err != nil {
		return err
	}
	defer p.stop()
	lift := func() error { return nil }
	limit := func() (err error) {
		lift, err = q.limit(p.cmd.Process.Pid)
		return err
	}
	if throughout {
		if err := limit(); err != nil {
			return err
		}
	}
	init, err := p.ready(ctx)
	if err == nil && !throughout {
		if _, err = p.settledCPU(); err == nil {
			err = limit()
		}
	}
	var body []byte
	var first time.Duration
	if err == nil {
		body, first, err = p.invoke(ctx, event)
	}
	if failed := lift(); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if throughout {
		add(&f.throttled, milliseconds(init+first))
	} else {
		add(&f.quotaFirst, milliseconds(first))
		add(&f.quota, milliseconds(init+first))
	}
	return f.check(body)
}

// later measures many events of one process, then the memory it took at the most.
func (f *figures) later(ctx context.Context, events *requests, n int) error {
	p, err := begin(ctx, f.name, f.command, f.env)
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := p.cpuOfEvents(ctx, warmUp, events.next, f.check, nil); err != nil {
		return err
	}
	cpu, err := p.cpuOfEvents(ctx, n, events.next, f.check, &f.warm)
	if err != nil {
		return err
	}
	add(&f.warmCPU, cpu)
	if cpu, err = p.cpuOfEvents(ctx, n, func() []byte { return events.under(0) }, f.check, nil); err != nil {
		return err
	}
	add(&f.knownCPU, cpu)
	peak, err := peakOf(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	add(&f.peak, mebibytes(peak))
	return nil
}
