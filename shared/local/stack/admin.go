package stack

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"claimcheck.dev/claimcheck/shared/local/lambda"
)

// runInfo is stack.json. The token keeps web pages, which can reach loopback but
// not read files, from calling functions.
type runInfo struct {
	PID   int    `json:"pid"`
	URL   string `json:"url"`
	Admin string `json:"admin"`
	Token string `json:"token"`
}

// DeadLetter is a message that a dead-letter queue holds.
type DeadLetter struct {
	Queue    string    `json:"queue"`
	Source   string    `json:"source"`
	ID       string    `json:"id"`
	Sent     time.Time `json:"sent"`
	Receives int       `json:"receives"`
	Body     string    `json:"body"`
}

// startAdmin serves Lambda's Invoke API and the dead letters to the commands of
// this program.
func (s *Stack) startAdmin() {
	s.adminKey = rand.Text()
	mux := http.NewServeMux()
	mux.Handle("/2015-03-31/functions/", lambda.Handler(func(name string) *lambda.Function {
		f, err := s.Function(name)
		if err != nil {
			return nil
		}
		return f
	}))
	mux.HandleFunc("GET /dead-letters", func(w http.ResponseWriter, r *http.Request) {
		letters := []DeadLetter{}
		for _, name := range s.queues.DeadLetterQueues() {
			messages, err := s.queues.Messages(name)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			for _, m := range messages {
				letters = append(letters, DeadLetter{name, m.Source, m.ID, m.Sent, m.Receives, m.Body})
			}
		}
		json.NewEncoder(w).Encode(letters)
	})
	mux.HandleFunc("POST /dead-letters/redrive", func(w http.ResponseWriter, r *http.Request) {
		moved := map[string]int{}
		for _, name := range s.queues.DeadLetterQueues() {
			if want := r.URL.Query().Get("queue"); want != "" && want != name {
				continue
			}
			n, err := s.queues.Redrive(name, "")
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			moved[name] = n
		}
		json.NewEncoder(w).Encode(moved)
	})
	want := []byte("Bearer " + s.adminKey)
	s.serve(s.listen.admin, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "only for the commands of this program", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// Client talks to a stack that runs in another process.
type Client struct{ info runInfo }

// Connect finds the stack that uses a data folder.
func Connect(data string) (*Client, error) {
	none := fmt.Errorf("no stack is running with its data in %s: start one with `make run`, or name the folder with DATA=…", data)
	text, err := os.ReadFile(filepath.Join(data, "stack.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, none
	}
	if err != nil {
		return nil, fmt.Errorf("finding the running stack: %w", err)
	}
	c := &Client{}
	if err := json.Unmarshal(text, &c.info); err != nil {
		return nil, none
	}
	// A stack that was killed leaves its file behind, but not its lock.
	if lock, err := lockFolder(data); err == nil {
		lock.Close()
		return nil, none
	}
	return c, nil
}

func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.info.Admin+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.info.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("talking to the running stack: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("talking to the running stack: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("the running stack answered %s: %s", res.Status, bytes.TrimSpace(text))
	}
	return res, text, nil
}

// IssueKey makes a key by invoking issue-key. The grant is a role or scopes.
func (c *Client) IssueKey(ctx context.Context, account, actor, role string, scopes []string) (string, error) {
	event, err := json.Marshal(struct {
		Account string   `json:"account"`
		Actor   string   `json:"actor"`
		Role    string   `json:"role,omitempty"`
		Scopes  []string `json:"scopes,omitempty"`
	}{account, actor, role, scopes})
	if err != nil {
		return "", err
	}
	res, payload, err := c.do(ctx, http.MethodPost, "/2015-03-31/functions/"+issueKey+"/invocations", event)
	if err != nil {
		return "", err
	}
	return keyOf(res.Header.Get("X-Amz-Function-Error"), payload)
}

// DeadLetters lists what the dead-letter queues hold, oldest first.
func (c *Client) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	_, text, err := c.do(ctx, http.MethodGet, "/dead-letters", nil)
	if err != nil {
		return nil, err
	}
	var letters []DeadLetter
	return letters, json.Unmarshal(text, &letters)
}

// Redrive sends dead letters back to where they came from; queue limits it to one
// dead-letter queue. It returns how many messages moved, by queue.
func (c *Client) Redrive(ctx context.Context, queue string) (map[string]int, error) {
	_, text, err := c.do(ctx, http.MethodPost, "/dead-letters/redrive?queue="+url.QueryEscape(queue), nil)
	if err != nil {
		return nil, err
	}
	var moved map[string]int
	return moved, json.Unmarshal(text, &moved)
}
