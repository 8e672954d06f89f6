package stack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"claimcheck.dev/claimcheck/shared/local/calls"
	"claimcheck.dev/claimcheck/shared/local/template"
)

// Deployed is what a created CloudFormation stack says of itself. Functions start with
// exactly that environment, and the stores carry those names; only the addresses
// of servers are exchanged for those of this machine.
type Deployed struct {
	// Names are physical names by logical id; a queue's is its name, not its URL.
	Names map[string]string `json:"names"`
	// Environment is each function's, by logical id.
	Environment map[string]map[string]string `json:"environment"`
	// QueueHost is the host (and port) of queue URLs, ContentHost the host of the
	// distribution in Environment.
	QueueHost   string `json:"queue_host"`
	ContentHost string `json:"content_host"`
}

// ReadDeployed reads a Deployed from a JSON file.
func ReadDeployed(path string) (*Deployed, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what was deployed: %w", err)
	}
	d := &Deployed{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("reading what was deployed from %s: %w", path, err)
	}
	return d, nil
}

// names are d's Names; those of a nil d are none.
func (d *Deployed) names() map[string]string {
	if d == nil {
		return nil
	}
	return d.Names
}

// apply replaces the environments that the template gave.
func (d *Deployed) apply(functions []template.Function, here template.Hosts) error {
	swap := strings.NewReplacer("://"+d.QueueHost+"/", "://"+here.Queues+"/", d.ContentHost, here.Content)
	if d.QueueHost == "" || d.ContentHost == "" {
		return fmt.Errorf("what was deployed does not say queue_host and content_host")
	}
	for i, fn := range functions {
		env, ok := d.Environment[fn.ID]
		if !ok {
			return fmt.Errorf("what was deployed has no function %s", fn.ID)
		}
		functions[i].Env = make(map[string]string, len(env))
		for name, value := range env {
			functions[i].Env[name] = swap.Replace(value)
		}
	}
	if len(d.Environment) != len(functions) {
		return fmt.Errorf("what was deployed has %d functions, the template %d", len(d.Environment), len(functions))
	}
	return nil
}

// watched puts the recorder of calls, if there is one, in front of a store.
func (s *Stack) watched(wrap func(*calls.Recorder, http.Handler) http.Handler, h http.Handler) http.Handler {
	if s.calls == nil {
		return h
	}
	return wrap(s.calls, h)
}

// caller is the logical id of the function or role that a session belongs to.
func (s *Stack) caller(accessKeyID, token string) (string, bool) {
	session, err := s.sessions.Find(accessKeyID, token)
	if err != nil {
		return "", false
	}
	for _, role := range s.template.Roles {
		if session.RoleARN == role.ARN {
			return role.ID, true
		}
	}
	fn, ok := s.template.FunctionByFolder(session.Name)
	return fn.ID, ok
}
