package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/local/calls"
	"claimcheck.dev/claimcheck/shared/local/content"
	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/local/queue"
	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/local/sts"
	"claimcheck.dev/claimcheck/shared/local/template"
)

// openStores opens what holds data and serves it.
func (s *Stack) openStores() error {
	if err := s.openQueues(); err != nil {
		return err
	}
	if err := s.openTables(); err != nil {
		return err
	}
	if err := s.openSessions(); err != nil {
		return err
	}
	return s.openBucket()
}

func (s *Stack) openQueues() error {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	var specs []queue.Spec
	for _, q := range s.template.Queues {
		specs = append(specs, queue.Spec{
			Name: q.Name, Visibility: seconds(q.VisibilitySeconds), Retention: seconds(q.RetentionSeconds),
			Delay: seconds(q.DelaySeconds), DeadLetter: q.DeadLetter, MaxReceives: q.MaxReceives,
		})
	}
	fresh := !exists(s.file("queues"))
	var err error
	s.queues, err = queue.Open(queue.Options{
		Dir: s.file("queues"), Queues: specs, Host: s.listen.queues.Addr().String(),
		Region: Region, AccountID: AccountID, Now: s.opt.Now,
	})
	if err != nil {
		return err
	}
	if fresh {
		if err := s.sendTestEvents(); err != nil {
			return err
		}
	}
	s.serve(s.listen.queues, s.watched((*calls.Recorder).SQS, s.queues))
	return nil
}

// sendTestEvents does what S3 does when a notification is set up: it sends a
// message that is no notification, which every consumer must cope with.
func (s *Stack) sendTestEvents() error {
	for _, b := range s.template.Buckets {
		for _, n := range b.Notifications {
			body, err := json.Marshal(map[string]string{
				"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": b.Name,
				"Time":      s.opt.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
				"RequestId": "LOCAL", "HostId": "local",
			})
			if err == nil {
				_, err = s.queues.Send(n.Queue, string(body), nil, -1)
			}
			if err != nil {
				return fmt.Errorf("setting up the notification of %s: %w", b.ID, err)
			}
		}
	}
	return nil
}

func (s *Stack) openTables() error {
	var err error
	s.dynamo, err = dynamo.Open(dynamo.Options{Dir: s.file("dynamo"), Now: s.opt.Now, Region: Region, Account: AccountID})
	if err != nil {
		return err
	}
	for _, t := range s.template.Tables {
		spec := dynamo.TableSpec{
			Name: t.Name, PartitionKey: dynamo.KeyAttribute(t.PartitionKey), SortKey: dynamo.KeyAttribute(t.SortKey),
			TTLAttribute: t.TTLAttribute, StreamView: t.StreamView,
		}
		for _, i := range t.Indexes {
			spec.Indexes = append(spec.Indexes, dynamo.IndexSpec{
				Name: i.Name, PartitionKey: dynamo.KeyAttribute(i.PartitionKey), SortKey: dynamo.KeyAttribute(i.SortKey),
				Projection: i.Projection, NonKeyAttributes: i.NonKey,
			})
		}
		if err := s.dynamo.CreateTable(spec); err != nil {
			return fmt.Errorf("making table %s: %w", t.ID, err)
		}
	}
	s.serve(s.listen.dynamo, s.watched((*calls.Recorder).DynamoDB, s.dynamo))
	return nil
}

// credentials recognises the sessions of functions and of roles they assume.
func (s *Stack) credentials(accessKeyID, token string) (s3.Account, error) {
	session, err := s.sessions.Find(accessKeyID, token)
	if err != nil {
		return s3.Account{}, err
	}
	account := s3.Account{SecretAccessKey: session.SecretAccessKey, Role: s3.Function}
	for _, role := range s.template.Roles {
		if session.RoleARN == role.ARN {
			account.Role = s3.Presign
		}
	}
	if fn, ok := s.template.FunctionByFolder(session.Name); ok {
		account.NoList = !fn.ListsBucket
	}
	return account, nil
}

func (s *Stack) openSessions() error {
	var err error
	if s.sessions, err = sts.OpenSessions(s.file("sessions.key"), nil); err != nil {
		return err
	}
	var roles []string
	for _, r := range s.template.Roles {
		roles = append(roles, r.ARN)
	}
	handler := sts.New(sts.Options{
		Roles: roles, Sessions: s.sessions,
		Secret: func(accessKeyID, token string) (string, error) {
			session, err := s.sessions.Find(accessKeyID, token)
			return session.SecretAccessKey, err
		},
	})
	s.serve(s.listen.sts, s.watched((*calls.Recorder).STS, handler))
	return nil
}

func (s *Stack) openBucket() error {
	if len(s.template.Buckets) == 0 {
		return nil
	}
	b := s.template.Buckets[0]
	var cors *s3.CORS
	if len(b.CORS) > 0 {
		cors = &s3.CORS{}
		for _, r := range b.CORS {
			cors.Rules = append(cors.Rules, s3.CORSRule{
				AllowedOrigins: r.Origins, AllowedMethods: r.Methods, AllowedHeaders: r.Headers,
				ExposedHeaders: r.Expose, MaxAge: r.MaxAgeSeconds,
			})
		}
	}
	var err error
	s.s3, err = s3.Start(context.Background(), s3.Options{
		Dir: s.file("s3"), Bucket: b.Name, Region: Region, Lookup: s.credentials, CORS: cors,
		OnObjectCreated: func(e s3.ObjectCreated) { s.notify(b, e) },
		Wrap:            func(h http.Handler) http.Handler { return s.watched((*calls.Recorder).S3, h) },
	})
	if err != nil {
		return err
	}
	s.S3URL = s.s3.URL()
	s.ContentURL = "http://" + s.listen.content.Addr().String()
	if s.template.Content == nil {
		return nil
	}
	origin, err := url.Parse(s.S3URL)
	if err != nil {
		return fmt.Errorf("reading the address of S3: %w", err)
	}
	headers := map[string]string{}
	for _, h := range s.template.Content.Headers {
		headers[h.Name] = h.Value
	}
	host := withCORS(s.template.Content.CORS, content.New(content.Options{Origin: origin, Headers: headers}))
	s.serve(s.listen.content, host)
	return nil
}

// notify sends a created object to the queues whose filter it passes.
func (s *Stack) notify(b template.Bucket, e s3.ObjectCreated) {
	delays := []time.Duration{-1} // the queue's own
	if s.opt.Notify != nil {
		delays = s.opt.Notify(e.Key)
	}
	for _, n := range b.Notifications {
		if !strings.HasPrefix(e.Key, n.Prefix) || !strings.HasSuffix(e.Key, n.Suffix) {
			continue
		}
		for _, delay := range delays {
			if _, err := s.queues.Send(n.Queue, string(s3.EventJSON(Region, b.Name, e)), nil, delay); err != nil {
				s.logf("notifying %s of an object: %v", n.Queue, err)
			}
		}
	}
}
