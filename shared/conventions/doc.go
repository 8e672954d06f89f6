// Package conventions holds no code, only tests of what the whole repository promises and no single package can check:
//
//   - a folder of functions/, a function in template.yaml and a sample in events/ belong together, one to one;
//   - what template.yaml grants is explicit and narrow, what it stores is kept and what it queues is never lost;
//   - the numbers of the contract are the defaults of the parameters;
//   - imports point from functions to adapters to the domain, never back.
//
// A test that fails here names the resource or the file, and the rule it breaks.
package conventions
