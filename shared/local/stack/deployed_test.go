package stack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/local/calls"
	"claimcheck.dev/claimcheck/shared/local/template"
)

// deployment is a created stack of the project as CloudFormation would describe it.
func deployment(t *testing.T) *Deployed {
	t.Helper()
	d := &Deployed{
		Names: map[string]string{"Table": "records-1X", "Objects": "objects-2Y", "OnObjectFunction": "on-object-3Z"}, Environment: map[string]map[string]string{},
		QueueHost: "sqs.example", ContentHost: "d111.cloudfront.example",
	}
	tpl, err := template.Load(filepath.Join(project, "template.yaml"), template.Options{
		Region: Region, AccountID: AccountID, StackName: StackName, Names: d.Names,
		Hosts: template.Hosts{Queues: d.QueueHost, Content: d.ContentHost},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tpl.Functions {
		d.Environment[f.ID] = f.Env
	}
	d.Environment["EchoFunction"]["GREETING"] = "from the cloud"
	return d
}

// TestDeployed starts with the names and environments of a created stack, and records what its functions do.
func TestDeployed(t *testing.T) {
	record := &logBuffer{}
	s, _ := launch(t, Options{Data: dataFolder(t), Deployed: deployment(t), Calls: record})
	res, body := get(t, s.URL+"/echo/x")
	if body != "from the cloud x" || "http://"+res.Header.Get("X-Content") != s.ContentURL {
		t.Errorf("echo answered %q, content on %s, want %s", body, res.Header.Get("X-Content"), s.ContentURL)
	}
	put(t, s, "staging/a")
	eventually(t, "the record of the object", func() bool { return recorded(t, s, "staging/a") })
	want := calls.Call{
		Caller: "OnObjectFunction", Operation: "dynamodb PutItem", Action: "dynamodb:PutItem",
		Resource: "arn:aws:dynamodb:" + Region + ":" + AccountID + ":table/records-1X",
	}
	found := false
	for line := range strings.Lines(record.String()) {
		var c calls.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		found = found || c == want
	}
	if !found {
		t.Errorf("%+v is not in the record:\n%s", want, record)
	}
}

func TestDeployedErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Deployed)
		want   string
	}{
		{"a function missing", func(d *Deployed) { delete(d.Environment, "EchoFunction") }, "has no function EchoFunction"},
		{"a function too many", func(d *Deployed) { d.Environment["OtherFunction"] = nil }, "the template"},
		{"no host", func(d *Deployed) { d.QueueHost = "" }, "does not say queue_host"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := deployment(t)
			test.change(d)
			if s, err := Start(t.Context(), Options{Root: project, Data: dataFolder(t), Deployed: d}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
				if err == nil {
					s.Close()
				}
			}
		})
	}
	path := filepath.Join(t.TempDir(), "d.json")
	if err := os.WriteFile(path, []byte(`{"queue_host":"q","names":{"T":"t"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := ReadDeployed(path); err != nil || d.QueueHost != "q" || d.Names["T"] != "t" {
		t.Errorf("read %+v, %v", d, err)
	}
	if _, err := ReadDeployed(path + ".none"); err == nil {
		t.Error("a missing file was read")
	}
}
