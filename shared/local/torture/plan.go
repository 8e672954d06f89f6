package main

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/local/lambda"
	"claimcheck.dev/claimcheck/shared/local/s3"
)

// plan is what goes wrong: for each engine a die of its own, made from the seed, and weather that changes from calm to
// storm. It does nothing before begin and after heal.
type plan struct {
	on     atomic.Bool
	tables die
	bucket die
	lambda die
	events die
}

// die decides whether the next request meets a fault, and which.
type die struct {
	mu      sync.Mutex
	rng     *rand.Rand
	draws   int
	weather float64 // multiplies the chance of a fault
	faults  int
}

// The weather changes after so many requests, and is one of these.
const weatherLasts = 150

var weathers = []float64{0, 0.5, 1, 1, 2, 4, 8}

func newPlan(seed uint64) *plan {
	p := &plan{}
	for i, d := range []*die{&p.tables, &p.bucket, &p.lambda, &p.events} {
		d.rng = rand.New(rand.NewPCG(seed, uint64(1000+i)))
	}
	return p
}

func (p *plan) begin() { p.on.Store(true) }
func (p *plan) heal()  { p.on.Store(false) }

// injected counts the faults so far.
func (p *plan) injected() int {
	n := 0
	for _, d := range []*die{&p.tables, &p.bucket, &p.lambda, &p.events} {
		d.mu.Lock()
		n += d.faults
		d.mu.Unlock()
	}
	return n
}

// roll calls pick, with the lock held, when the die says that something goes wrong.
func roll[T any](p *plan, d *die, chance float64, pick func(*rand.Rand) T) (out T) {
	if !p.on.Load() {
		return out
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draws%weatherLasts == 0 {
		d.weather = weathers[d.rng.IntN(len(weathers))]
	}
	d.draws++
	if d.rng.Float64() >= chance*d.weather {
		return out
	}
	d.faults++
	return pick(d.rng)
}

// table is the fault plan of DynamoDB.
func (p *plan) table(op string, _ []byte) dynamo.Fault {
	return roll(p, &p.tables, 0.03, func(r *rand.Rand) dynamo.Fault {
		choices := []dynamo.Fault{dynamo.FaultThrottle, dynamo.FaultInternal, dynamo.FaultLostReply, dynamo.FaultLostReply}
		switch op {
		case "TransactWriteItems", "UpdateItem", "PutItem", "DeleteItem": // what another transaction can collide with
			choices = append(choices, dynamo.FaultConflict, dynamo.FaultConflict, dynamo.FaultConflict)
		}
		return choices[r.IntN(len(choices))]
	})
}

// object is the fault plan of S3, for functions and for clients.
func (p *plan) object(s3.Request) s3.Fault {
	return roll(p, &p.bucket, 0.04, func(r *rand.Rand) s3.Fault {
		switch n := r.IntN(100); {
		case n < 25:
			return s3.Fault{Kind: s3.Error500}
		case n < 50:
			return s3.Fault{Kind: s3.Error503SlowDown}
		case n < 65:
			return s3.Fault{Kind: s3.CutConnection}
		case n < 85:
			return s3.Fault{Kind: s3.LostReply}
		case n < 99:
			return s3.Slow(time.Duration(1+r.IntN(150)) * time.Millisecond)
		}
		return s3.Slow(2500 * time.Millisecond) // longer than functions wait for one attempt
	})
}

// function is the fault plan of Lambda: instances that are killed.
func (p *plan) function(string, int) lambda.Fault {
	return roll(p, &p.lambda, 0.01, func(r *rand.Rand) lambda.Fault {
		return []lambda.Fault{lambda.KillOnDelivery, lambda.KillBeforeAnswer, lambda.KillBeforeAnswer}[r.IntN(3)]
	})
}

// notify is the fault plan of S3's notifications: late, twice, and so out of order.
func (p *plan) notify(string) []time.Duration {
	delays := roll(p, &p.events, 0.15, func(r *rand.Rand) []time.Duration {
		late := func() time.Duration { return time.Duration(r.IntN(6000)) * time.Millisecond }
		switch r.IntN(3) {
		case 0:
			return []time.Duration{late()}
		case 1:
			return []time.Duration{0, late()}
		}
		return []time.Duration{late(), late()}
	})
	if delays == nil {
		return []time.Duration{0}
	}
	return delays
}
