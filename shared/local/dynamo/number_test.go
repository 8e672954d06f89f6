package dynamo

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomDecimal draws numbers of all magnitudes, often close to each other.
func randomDecimal(r *rand.Rand) decimal {
	digits := make([]byte, 1+r.IntN(5))
	for i := range digits {
		digits[i] = byte('0' + r.IntN(3))
	}
	exp := r.IntN(7) - 3
	if r.IntN(5) == 0 {
		exp = minDecimalExp + 5 + r.IntN(maxDecimalExp-minDecimalExp-5)
	}
	d, err := normalize(r.IntN(2) == 0, string(digits), exp)
	if err != nil {
		panic(err)
	}
	return d
}

func (d decimal) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(d.String())
	if !ok {
		panic("not a number: " + d.String())
	}
	return r
}

// Numbers must behave as exact rationals do, whichever way they are looked at.
func TestDecimalAgreesWithRationals(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, b := randomDecimal(r), randomDecimal(r)
		want := a.rat().Cmp(b.rat())
		if got := a.compare(b); got != want {
			t.Fatalf("compare(%s, %s) = %d, want %d", a, b, got, want)
		}
		// The stored order of keys is that of the bytes with a terminator.
		x, y := appendPart(nil, sortable(a)), appendPart(nil, sortable(b))
		if got := strings.Compare(string(x), string(y)); got != want {
			t.Fatalf("the keys of %s and %s compare as %d, want %d", a, b, got, want)
		}
		if want == 0 && a != b {
			t.Fatalf("%#v and %#v are equal numbers and different values", a, b)
		}
		if sum, err := a.add(b); err == nil {
			if exact := new(big.Rat).Add(a.rat(), b.rat()); sum.rat().Cmp(exact) != 0 {
				t.Fatalf("%s + %s = %s", a, b, sum)
			}
		} else if err != errNumberPrecision {
			t.Fatalf("%s + %s: %v", a, b, err)
		}
		if again, err := parseDecimal(a.String()); err != nil || again != a {
			t.Fatalf("%s reads back as %s, %v", a, again, err)
		}
	}
}

func TestDecimalText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e5": "0", "1": "1", "+1": "1", "-1": "-1", "00100": "100", "1e2": "100",
		"1.50": "1.5", ".5": "0.5", "5.": "5", "1E-3": "0.001", "123.456e1": "1234.56", "-0.10": "-0.1",
		"9.9999999999999999999999999999999999999E+125": strings.Repeat("9", 38) + strings.Repeat("0", 88),
		"1e-130": "0." + strings.Repeat("0", 129) + "1",
	} {
		d, err := parseDecimal(text)
		if err != nil || d.String() != want {
			t.Errorf("parseDecimal(%q) = %s, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", " 1", "1 ", "+", "-", ".", "e1", "1e", "1e+", "1e1.5", "1,5", "--1", "١", "Infinity", strings.Repeat("1", maxNumberInput+1)} {
		if d, err := parseDecimal(text); err == nil {
			t.Errorf("parseDecimal(%.40q) = %s, want an error", text, d)
		}
	}
}

func TestDecimalSizeAndInt64(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 1, "1": 2, "12": 2, "123": 3, "-123": 4, "100": 2, "1e-100": 2, strings.Repeat("1", 38): 20} {
		if d, _ := parseDecimal(text); d.size() != want {
			t.Errorf("size of %s is %d, want %d", text, d.size(), want)
		}
	}
	for text, want := range map[string]int64{"0": 0, "12.9": 12, "-12.9": -12, "9223372036854775807": 1<<63 - 1} {
		if d, _ := parseDecimal(text); true {
			if got, ok := d.int64(); !ok || got != want {
				t.Errorf("int64 of %s is %d, %t", text, got, ok)
			}
		}
	}
	if d, _ := parseDecimal("9223372036854775808"); true {
		if _, ok := d.int64(); ok {
			t.Error("2^63 fits an int64")
		}
	}
}
