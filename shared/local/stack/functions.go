package stack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"claimcheck.dev/claimcheck/shared/local/apigw"
	"claimcheck.dev/claimcheck/shared/local/lambda"
	"claimcheck.dev/claimcheck/shared/local/sources"
	"claimcheck.dev/claimcheck/shared/local/template"
)

// startTogether is how many functions start at a time.
const startTogether = 4

// startFunctions makes the pools and starts one instance of each, so that a
// function that cannot start (a missing variable, say) stops the stack now.
func (s *Stack) startFunctions(ctx context.Context) error {
	for _, fn := range s.template.Functions {
		s.functions[fn.ID] = lambda.New(lambda.Config{
			Name: fn.Name, Label: fn.Folder, Binary: s.file("functions", fn.Folder),
			Env: fn.Env, Runtime: s.runtimeEnv(fn), MemoryMB: fn.MemoryMB,
			Timeout: time.Duration(fn.TimeoutSeconds) * time.Second, Instances: fn.Concurrency,
			Region: Region, AccountID: AccountID, Log: s.log, Faults: s.opt.Faults,
		})
	}
	began := time.Now()
	errs := make([]error, len(s.template.Functions))
	places := make(chan struct{}, startTogether)
	var started sync.WaitGroup
	for i, fn := range s.template.Functions {
		places <- struct{}{}
		started.Go(func() {
			errs[i] = s.functions[fn.ID].Start(ctx)
			<-places
		})
	}
	started.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	s.logf("%d functions started in %s", len(errs), time.Since(began).Round(time.Millisecond))
	return nil
}

// runtimeEnv is what the cloud's runtime gives a function beside its own
// variables: credentials, here of a session that outlives any stack; and the
// addresses of the local servers, in the variables that every SDK reads.
func (s *Stack) runtimeEnv(fn template.Function) map[string]string {
	session := s.sessions.Issue("arn:aws:iam::"+AccountID+":role/"+fn.Name+"Role", fn.Name, 10*365*24*time.Hour)
	env := map[string]string{
		"AWS_ACCESS_KEY_ID":         session.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY":     session.SecretAccessKey,
		"AWS_SESSION_TOKEN":         session.SessionToken,
		"AWS_ENDPOINT_URL_DYNAMODB": "http://" + s.listen.dynamo.Addr().String(),
		"AWS_ENDPOINT_URL_STS":      "http://" + s.listen.sts.Addr().String(),
		"AWS_ENDPOINT_URL_SQS":      "http://" + s.listen.queues.Addr().String(),
	}
	if s.S3URL != "" {
		env["AWS_ENDPOINT_URL_S3"] = s.S3URL
	}
	return env
}

func (s *Stack) startGateway() error {
	s.URL = "http://" + s.listen.api.Addr().String()
	if s.template.API == nil {
		return nil
	}
	opt := apigw.Options{
		AccountID: AccountID, APIID: "local", Log: s.log,
		Rate: s.template.API.Rate, Burst: s.template.API.Burst,
	}
	if c := s.template.API.CORS; c != nil {
		opt.CORS = &apigw.CORS{
			Origins: c.Origins, Methods: c.Methods, Headers: c.Headers, Expose: c.Expose,
			MaxAgeSeconds: c.MaxAgeSeconds, Credentials: c.Credentials,
		}
	}
	for _, fn := range s.template.Functions {
		for _, r := range fn.Routes {
			opt.Routes = append(opt.Routes, apigw.Route{
				Method: r.Method, Path: r.Path, Function: s.functions[fn.ID],
				Timeout: time.Duration(r.TimeoutMillis) * time.Millisecond,
			})
		}
	}
	gateway, err := apigw.New(opt)
	if err != nil {
		return err
	}
	s.api = s.serve(s.listen.api, gateway)
	return nil
}

// startSources starts everything that calls functions without being asked over
// HTTP, and the sweep of expired table items.
func (s *Stack) startSources(ctx context.Context) {
	for _, fn := range s.template.Functions {
		target := sources.Target{
			Function: s.functions[fn.ID], Label: fn.Folder, Log: s.log,
			ARN: "arn:aws:lambda:" + Region + ":" + AccountID + ":function:" + fn.Name,
		}
		for _, q := range fn.Queues {
			source := &sources.Queue{
				Target: target, Queues: s.queues, Name: q.Queue, BatchSize: q.BatchSize,
				Window: time.Duration(q.WindowSeconds) * time.Second, Workers: workers(fn, q),
				PartialFailures: q.PartialFailures, Filter: s.filters[q.ID], Region: Region,
			}
			s.work.Go(func() { source.Run(ctx) })
		}
		for _, st := range fn.Streams {
			source := s.streamSource(target, st)
			s.work.Go(func() {
				if err := source.Run(ctx); err != nil {
					s.fail(err)
				}
			})
		}
		for _, sc := range fn.Schedules {
			name := sc.Name
			if name == "" {
				name = StackName + "-" + sc.ID
			}
			source := &sources.Schedule{
				Target: target, Name: name, Every: time.Duration(sc.Seconds) * time.Second, Input: sc.Input,
				Scheduler: sc.Scheduler, Region: Region, AccountID: AccountID, Now: s.opt.Now,
			}
			s.schedules[sc.ID] = source
			if !sc.Disabled {
				s.work.Go(func() { source.Run(ctx) })
			}
		}
	}
	s.work.Go(func() {
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.Sweep()
			case <-ctx.Done():
				return
			}
		}
	})
}

// workers is how many batches a queue's function handles at a time: as many as it
// has instances, unless the template says fewer.
func workers(fn template.Function, q template.QueueSource) int {
	n := 4
	if fn.Concurrency > 0 {
		n = fn.Concurrency
	}
	if q.MaxConcurrency > 0 {
		n = min(n, q.MaxConcurrency)
	}
	return n
}

func (s *Stack) streamSource(target sources.Target, st template.StreamSource) *sources.Stream {
	age := time.Duration(-1)
	if st.MaxAgeSeconds >= 0 {
		age = time.Duration(st.MaxAgeSeconds) * time.Second
	}
	source := &sources.Stream{
		Target: target, Log: tableStream{s.dynamo, st.Table}, Position: s.file("streams", st.ID+".json"),
		Latest: st.Latest, BatchSize: st.BatchSize, Window: time.Duration(st.WindowSeconds) * time.Second,
		Bisect: st.Bisect, MaxRetries: st.MaxRetries, MaxAge: age, PartialFailures: st.PartialFailures,
		Filter: s.filters[st.ID], Now: s.opt.Now,
		ARN: "arn:aws:dynamodb:" + Region + ":" + AccountID + ":table/" + st.Table + "/stream/local",
	}
	if st.OnFailure != "" {
		source.GiveUp = func(body string) error {
			_, err := s.queues.Send(st.OnFailure, body, nil, -1)
			return err
		}
	}
	return source
}

func (s *Stack) logf(format string, args ...any) {
	fmt.Fprintf(s.log, "[stack] "+format+"\n", args...)
}
