// Package e2e holds only tests: scripts that drive the running stack over HTTP, as a client does, refusals included.
// Each stack is the real claimcheck-local in a process of its own, with the functions that ship.
//
// A script in testdata/ begins with an optional line `# params: Name=Value …` naming template parameters. It acts as
// its own account with an owner key in $KEY and has the commands described at [commands].
package e2e
