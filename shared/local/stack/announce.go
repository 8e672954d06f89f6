package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// issueKey is the folder of the function that makes keys for operators.
const issueKey = "issue-key"

// announce gets the owner key, writes the two files and prints the two lines.
// fresh says that there is no data of an earlier run, so no key of one either.
func (s *Stack) announce(ctx context.Context, fresh bool) error {
	lines := "CLAIMCHECK_URL=" + s.URL + "\n"
	if _, ok := s.template.FunctionByFolder(issueKey); ok {
		if !fresh {
			s.Key = readKey(s.file("env"))
		}
		if s.Key == "" {
			key, err := s.mint(ctx)
			if err != nil {
				return err
			}
			s.Key = key
		}
		lines += "CLAIMCHECK_KEY=" + s.Key + "\n"
	}
	if err := writeFile(s.file("env"), []byte(lines)); err != nil {
		return fmt.Errorf("writing the address and the key: %w", err)
	}
	info, err := json.Marshal(runInfo{PID: os.Getpid(), URL: s.URL, Admin: "http://" + s.listen.admin.Addr().String(), Token: s.adminKey})
	if err == nil {
		err = writeFile(s.file("stack.json"), info)
	}
	if err != nil {
		return fmt.Errorf("writing how to find the stack: %w", err)
	}
	s.logf("ready on %s (content %s, S3 %s); %d cloud-only parts of the template are not started", s.URL, s.ContentURL, s.S3URL, len(s.template.Skipped))
	_, err = fmt.Fprint(s.opt.Stdout, lines)
	return err
}

// mint makes the first owner key the way an operator does, by invoking issue-key.
func (s *Stack) mint(ctx context.Context) (string, error) {
	event := []byte(`{"account":"local","actor":"owner","role":"owner"}`)
	res, err := s.Invoke(ctx, issueKey, event)
	if err != nil {
		return "", fmt.Errorf("making the owner key: %w", err)
	}
	return keyOf(res.FunctionError, res.Payload)
}

// keyOf takes the key out of an answer of issue-key.
func keyOf(functionError string, payload []byte) (string, error) {
	var answer struct {
		Key     string `json:"key"`
		Message string `json:"errorMessage"`
	}
	err := json.Unmarshal(payload, &answer)
	switch {
	case functionError != "" && err == nil && answer.Message != "":
		return "", errors.New("issue-key refused: " + firstLine(answer.Message))
	case functionError != "" || err != nil || answer.Key == "":
		return "", errors.New("issue-key did not answer with a key; its log says why")
	}
	return answer.Key, nil
}

// readKey is the key in an env file, empty when there is none.
func readKey(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, ok := strings.CutPrefix(lines.Text(), "CLAIMCHECK_KEY="); ok {
			return key
		}
	}
	return ""
}

// writeFile replaces a file at once, readable by its owner only.
func writeFile(path string, text []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
