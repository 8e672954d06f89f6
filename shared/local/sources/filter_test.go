package sources

import "testing"

func TestFilter(t *testing.T) {
	t.Parallel()
	const record = `{"eventName":"MODIFY","n":5,"flag":true,"none":null,"list":["x","y"],"dynamodb":{"NewImage":{"state":{"S":"deleted"},"pk":{"S":"FILE#1"}}}}`
	tests := []struct {
		pattern string
		want    bool
	}{
		{`{"eventName":["MODIFY"]}`, true},
		{`{"eventName":["INSERT","MODIFY"]}`, true},
		{`{"eventName":["modify"]}`, false},
		{`{"eventName":[{"equals-ignore-case":"modify"}]}`, true},
		{`{"eventName":["MODIFY"],"n":[6]}`, false},
		{`{"n":[5]}`, true},
		{`{"n":["5"]}`, false},
		{`{"flag":[true]}`, true},
		{`{"none":[null]}`, true},
		{`{"missing":[null]}`, false},
		{`{"list":["y"]}`, true},
		{`{"list":["z"]}`, false},
		{`{"dynamodb":{"NewImage":{"state":{"S":["deleted","expired"]}}}}`, true},
		{`{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"FILE#"}]}}}}`, true},
		{`{"dynamodb":{"NewImage":{"pk":{"S":[{"suffix":"#2"}]}}}}`, false},
		{`{"dynamodb":{"OldImage":{"pk":{"S":["FILE#1"]}}}}`, false},
		{`{"dynamodb":{"OldImage":{"pk":{"S":[{"exists":false}]}}}}`, true},
		{`{"dynamodb":{"NewImage":{"pk":{"S":[{"exists":true}]}}}}`, true},
		{`{"n":[{"numeric":[">",4,"<=",5]}]}`, true},
		{`{"n":[{"numeric":["<",5]}]}`, false},
		{`{"n":[{"numeric":[">=",5]}]}`, true},
		{`{"n":[{"numeric":["=",5]}]}`, true},
		{`{"eventName":[{"numeric":["=",5]}]}`, false},
		{`{"eventName":[{"anything-but":"INSERT"}]}`, true},
		{`{"eventName":[{"anything-but":["INSERT","MODIFY"]}]}`, false},
		{`{"eventName":[{"anything-but":{"prefix":"MOD"}}]}`, false},
		{`{"missing":[{"anything-but":"x"}]}`, false},
		{`{}`, true},
	}
	for _, test := range tests {
		f, err := NewFilter([]string{test.pattern})
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if got := f.Match([]byte(record)); got != test.want {
			t.Errorf("%s matches: %t", test.pattern, got)
		}
	}
	two, err := NewFilter([]string{`{"n":[6]}`, `{"n":[5]}`})
	if err != nil || !two.Match([]byte(record)) {
		t.Errorf("one of two patterns does not suffice (%v)", err)
	}
	if two.Match([]byte("no JSON")) || !(Filter{}).Match([]byte("no JSON")) {
		t.Error("what is no JSON matches a pattern, or not the empty filter")
	}
}

func TestFilterMessage(t *testing.T) {
	t.Parallel()
	f, err := NewFilter([]string{`{"body":{"kind":["a"]}}`, `{"body":["word"]}`})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]bool{`{"kind":"a"}`: true, `{"kind":"b"}`: false, "word": true, "other": false} {
		if f.MatchMessage(body) != want {
			t.Errorf("%s matches: %t", body, !want)
		}
	}
}

func TestBadFilters(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		`[]`, `{"a":1}`, `{"a":[[1]]}`, `{"$or":[{"a":[1]}]}`, `{"a":[{"wildcard":"*"}]}`, `{"a":[{"prefix":1}]}`, `{"a":[{"exists":"yes"}]}`,
		`{"a":[{"numeric":["<"]}]}`, `{"a":[{"numeric":["<>",1]}]}`, `{"a":[{"numeric":["<","1"]}]}`, `{"a":[{"anything-but":{"suffix":"x"}}]}`, `{"a":[{"prefix":"x","suffix":"y"}]}`,
	} {
		if _, err := NewFilter([]string{pattern}); err == nil {
			t.Errorf("%s was accepted", pattern)
		}
	}
}
