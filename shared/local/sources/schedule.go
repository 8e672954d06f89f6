package sources

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"
)

// Schedule calls a function at a rate, the first time one period after the start.
// Calls do not overlap: one that takes longer than the period delays the next.
type Schedule struct {
	Target
	Name  string
	Every time.Duration
	// Input is the event; empty means the one that EventBridge makes.
	Input string
	// Scheduler: EventBridge Scheduler sends it, not a rule; their events differ.
	Scheduler         bool
	Region, AccountID string
	Now               func() time.Time
}

// Run calls the function until ctx ends.
func (s *Schedule) Run(ctx context.Context) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if _, failed := s.invoke(ctx, s.Event()); failed != "" && ctx.Err() == nil {
			s.logf("the call of schedule %s failed: %s", s.Name, failed)
		}
	}
}

// Event is what the function is called with now.
func (s *Schedule) Event() []byte {
	if s.Input != "" {
		return []byte(s.Input)
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	var id [16]byte
	rand.Read(id[:])
	event := struct {
		Version    string   `json:"version"`
		ID         string   `json:"id"`
		DetailType string   `json:"detail-type"`
		Source     string   `json:"source"`
		Account    string   `json:"account"`
		Time       string   `json:"time"`
		Region     string   `json:"region"`
		Resources  []string `json:"resources"`
		Detail     any      `json:"detail"`
	}{
		"0", fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		"Scheduled Event", "aws.events", s.AccountID, now().UTC().Format(time.RFC3339), s.Region,
		[]string{"arn:aws:events:" + s.Region + ":" + s.AccountID + ":rule/" + s.Name}, struct{}{},
	}
	if s.Scheduler {
		event.Source, event.Detail = "aws.scheduler", "{}"
		event.Resources[0] = "arn:aws:scheduler:" + s.Region + ":" + s.AccountID + ":schedule/default/" + s.Name
	}
	b, _ := json.Marshal(event) // strings always encode
	return b
}
