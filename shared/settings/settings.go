// Package settings reads a function's environment into a struct, once, at start-up.
//
// A field is filled from the variable named in its `env` tag: a string, an int64 of 1 or more, or a time.Duration
// given in whole seconds from 1 to 100 years. Embedded structs are filled too. There are no defaults: the template states
// every value, so a missing variable is a deployment fault and stops the start.
package settings

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// Load fills a T through lookup (os.LookupEnv) and reports every missing or malformed variable at once.
func Load[T any](lookup func(string) (string, bool)) (T, error) {
	var out T
	err := fill(reflect.ValueOf(&out).Elem(), lookup)
	return out, err
}

var durationType = reflect.TypeFor[time.Duration]()

// maxSeconds keeps sums of durations and times far from overflowing.
const maxSeconds = int64(100 * 365 * 24 * time.Hour / time.Second)

func fill(v reflect.Value, lookup func(string) (string, bool)) error {
	var errs []error
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if field.Anonymous {
			errs = append(errs, fill(value, lookup))
			continue
		}
		name := field.Tag.Get("env")
		text, ok := lookup(name)
		if !ok || text == "" {
			errs = append(errs, fmt.Errorf("the environment variable %s is missing", name))
			continue
		}
		if value.Kind() == reflect.String {
			value.SetString(text)
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			errs = append(errs, fmt.Errorf("the environment variable %s must be a whole number of 1 or more", name))
			continue
		}
		if field.Type == durationType && n > maxSeconds {
			errs = append(errs, fmt.Errorf("the environment variable %s must be at most %d (100 years)", name, maxSeconds))
			continue
		}
		if field.Type == durationType {
			n *= int64(time.Second)
		}
		value.SetInt(n)
	}
	return errors.Join(errs...)
}
