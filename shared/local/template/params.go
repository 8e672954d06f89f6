package template

import (
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// readParameters gives every parameter its value: the override, else the default.
// The checks are those CloudFormation makes before it creates anything.
func (d *document) readParameters(section *yaml.Node) {
	known := map[string]bool{}
	for key, decl := range pairs(section) {
		known[key.Value] = true
		value, overridden := d.opt.Params[key.Value]
		if def := child(decl, "Default"); !overridden && def != nil {
			value, overridden = def.Value, true
		}
		if !overridden {
			d.failf(key.Line, `parameter %s has no default: give it with PARAMS="%s=…"`, key.Value, key.Value)
			continue
		}
		if n := d.parameter(key, decl, value); n != nil {
			d.params[key.Value] = n
		}
	}
	var unknown []string
	for name := range d.opt.Params {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	sort.Strings(unknown)
	for _, name := range unknown {
		names := make([]string, 0, len(known))
		for n := range known {
			names = append(names, n)
		}
		sort.Strings(names)
		d.failf(0, "unknown parameter %s: %s declares %s", name, d.file, strings.Join(names, ", "))
	}
}

func (d *document) parameter(key, decl *yaml.Node, value string) *yaml.Node {
	get := func(name string) string {
		if n := child(decl, name); n != nil {
			return n.Value
		}
		return ""
	}
	bad := func(rule string) {
		if why := get("ConstraintDescription"); why != "" {
			rule += " (" + why + ")"
		}
		d.failf(key.Line, "parameter %s is %q but must %s", key.Value, value, rule)
	}
	kind := get("Type")
	var items []string
	switch kind {
	case "String", "Number":
		items = []string{value}
	case "CommaDelimitedList", "List<Number>":
		if value != "" {
			for _, item := range strings.Split(value, ",") {
				items = append(items, strings.TrimSpace(item))
			}
		}
	default:
		d.failf(key.Line, "parameter %s has type %q: the local stack knows String, Number, CommaDelimitedList and List<Number>", key.Value, kind)
		return nil
	}
	before := len(d.problems)
	for _, item := range items {
		if strings.Contains(kind, "Number") {
			number, err := strconv.ParseFloat(item, 64)
			if err != nil {
				bad("be a number")
				continue
			}
			if low, err := strconv.ParseFloat(get("MinValue"), 64); err == nil && number < low {
				bad("be at least " + get("MinValue"))
			}
			if high, err := strconv.ParseFloat(get("MaxValue"), 64); err == nil && number > high {
				bad("be at most " + get("MaxValue"))
			}
		}
		if allowed := child(decl, "AllowedValues"); allowed != nil {
			var values []string
			for _, v := range allowed.Content {
				values = append(values, v.Value)
			}
			if !slices.Contains(values, item) {
				bad("be one of " + strings.Join(values, ", "))
			}
		}
		if low, err := strconv.Atoi(get("MinLength")); err == nil && len(item) < low {
			bad("have at least " + get("MinLength") + " characters")
		}
		if high, err := strconv.Atoi(get("MaxLength")); err == nil && len(item) > high {
			bad("have at most " + get("MaxLength") + " characters")
		}
		if pattern := get("AllowedPattern"); pattern != "" {
			re, err := regexp.Compile("^(?:" + pattern + ")$")
			if err != nil {
				d.failf(key.Line, "AllowedPattern of parameter %s is not a pattern the local stack can check: %v", key.Value, err)
			} else if !re.MatchString(item) {
				bad("match " + pattern)
			}
		}
	}
	if len(d.problems) > before {
		return nil
	}
	if kind == "String" || kind == "Number" {
		return scalar(key.Line, value)
	}
	return list(key.Line, items)
}
