//lint:file-ignore ST1005 the messages are DynamoDB's own, word for word

package dynamo

import (
	"errors"
	"math/big"
	"strings"
)

// Limits of the DynamoDB number type: up to 38 significant digits, magnitudes
// from 1E-130 to 9.99...E+125 and zero.
const (
	maxDigits      = 38
	maxDecimalExp  = 126  // exponent of 0.d1d2... for 9.99E+125
	minDecimalExp  = -129 // exponent of 0.d1d2... for 1E-130
	maxNumberInput = 1000 // characters; longer text can only be padding
)

var (
	errNumberOverflow  = errors.New("Number overflow. Attempting to store a number with magnitude larger than supported range")
	errNumberUnderflow = errors.New("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	errNumberPrecision = errors.New("Attempting to store more than 38 significant digits in a Number")
	errNumberEmpty     = errors.New("The parameter cannot be converted to a numeric value")
)

// decimal is a DynamoDB number: ±0.digits × 10^exp, where digits has neither
// leading nor trailing zeros. Zero has no digits, and there is no negative
// zero, so equal numbers are equal Go values.
type decimal struct {
	digits string
	exp    int16
	neg    bool
}

// parseDecimal reads an optional sign, digits with an optional point, and an
// optional exponent.
func parseDecimal(s string) (decimal, error) {
	if s == "" {
		return decimal{}, errNumberEmpty
	}
	notNumber := errors.New("The parameter cannot be converted to a numeric value: " + s)
	if len(s) > maxNumberInput {
		return decimal{}, notNumber
	}
	rest := s
	neg := false
	if rest[0] == '-' || rest[0] == '+' {
		neg = rest[0] == '-'
		rest = rest[1:]
	}
	mantissa, exponent := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		var ok bool
		if exponent, ok = parseExponent(rest[i+1:]); !ok {
			return decimal{}, notNumber
		}
		mantissa = rest[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole == "" && fraction == "" || !allDigits(whole) || !allDigits(fraction) {
		return decimal{}, notNumber
	}
	return normalize(neg, whole+fraction, len(whole)+exponent)
}

// parseExponent reads the digits after "e". Its result saturates: anything
// past a few thousand is out of range whatever the mantissa is.
func parseExponent(s string) (int, bool) {
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if s == "" || !allDigits(s) {
		return 0, false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		n = min(n*10+int(s[i]-'0'), 1_000_000)
	}
	if neg {
		n = -n
	}
	return n, true
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// normalize builds a decimal from digits that stand for 0.digits × 10^exp and
// applies the limits of the type.
func normalize(neg bool, digits string, exp int) (decimal, error) {
	trimmed := strings.TrimLeft(digits, "0")
	exp -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	switch {
	case trimmed == "":
		return decimal{}, nil
	case exp > maxDecimalExp:
		return decimal{}, errNumberOverflow
	case exp < minDecimalExp:
		return decimal{}, errNumberUnderflow
	case len(trimmed) > maxDigits:
		return decimal{}, errNumberPrecision
	}
	return decimal{digits: strings.Clone(trimmed), exp: int16(exp), neg: neg}, nil
}

// String is the plain notation that DynamoDB answers with: no exponent.
func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	var b strings.Builder
	if d.neg {
		b.WriteByte('-')
	}
	exp, n := int(d.exp), len(d.digits)
	switch {
	case exp <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -exp))
		b.WriteString(d.digits)
	case exp >= n:
		b.WriteString(d.digits)
		b.WriteString(strings.Repeat("0", exp-n))
	default:
		b.WriteString(d.digits[:exp])
		b.WriteByte('.')
		b.WriteString(d.digits[exp:])
	}
	return b.String()
}

// compare returns -1, 0 or +1 in numeric order.
func (d decimal) compare(o decimal) int {
	if s, t := d.sign(), o.sign(); s != t {
		if s < t {
			return -1
		}
		return 1
	} else if s == 0 {
		return 0
	}
	c := strings.Compare(d.digits, o.digits)
	if d.exp != o.exp {
		c = 1
		if d.exp < o.exp {
			c = -1
		}
	}
	if d.neg {
		return -c
	}
	return c
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

// add returns d+o. A sum that needs more than 38 digits is an error rather
// than a silently rounded value.
func (d decimal) add(o decimal) (decimal, error) {
	if d.digits == "" {
		return o, nil
	}
	if o.digits == "" {
		return d, nil
	}
	scale := min(int(d.exp)-len(d.digits), int(o.exp)-len(o.digits))
	sum := d.scaled(scale)
	sum.Add(sum, o.scaled(scale))
	digits := new(big.Int).Abs(sum).String()
	return normalize(sum.Sign() < 0, digits, len(digits)+scale)
}

func (d decimal) negate() decimal {
	d.neg = !d.neg && d.digits != ""
	return d
}

// scaled returns d / 10^scale, which the caller has made an integer.
func (d decimal) scaled(scale int) *big.Int {
	zeros := int(d.exp) - len(d.digits) - scale
	n, _ := new(big.Int).SetString(d.digits+strings.Repeat("0", zeros), 10)
	if d.neg {
		n.Neg(n)
	}
	return n
}

// size is what a number adds to the size of an item, in bytes: one for every two
// digits, one more, and another for a sign.
func (d decimal) size() int {
	size := (len(d.digits)+1)/2 + 1
	if d.neg {
		size++
	}
	return size
}

// int64 returns the whole part, and false when it does not fit.
func (d decimal) int64() (int64, bool) {
	whole, _, _ := strings.Cut(d.String(), ".")
	n, ok := new(big.Int).SetString(whole, 10)
	if !ok || !n.IsInt64() {
		return 0, false
	}
	return n.Int64(), true
}

// appendSortable appends bytes that compare as the numbers do.
func (d decimal) appendSortable(b []byte) []byte {
	if d.digits == "" {
		return append(b, 0x80)
	}
	exp := uint16(int(d.exp) + 0x4000)
	if !d.neg {
		b = append(b, 0xC0, byte(exp>>8), byte(exp))
		return append(b, d.digits...)
	}
	// Negative numbers: everything is inverted, and the end sorts high, so that
	// -12 comes after -123.
	b = append(b, 0x40, ^byte(exp>>8), ^byte(exp))
	for i := 0; i < len(d.digits); i++ {
		b = append(b, ^d.digits[i])
	}
	return append(b, 0xFF)
}
