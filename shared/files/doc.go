// Package files is the domain of Claimcheck: what a file is, which states it passes through, who may see it and
// what every operation does. It imports no AWS package and knows no HTTP; adapters implement the small interfaces
// declared beside the operation that needs them, and their comments are the contract.
//
// One type serves one group of operations, with just the dependencies it needs, so that each Lambda function links
// no more than it uses:
//
//   - Uploads reserves slots, Renewer renews their presigned uploads
//   - Inline stores small bodies at once
//   - Verifier turns uploaded bytes into a sealed, readable file, or rejects them; Completer does so on request
//   - Reader shows files, links them and resolves handles
//   - Claimer lends single-use files to one holder at a time; Claims commits, releases and extends
//   - Deleter deletes, Lister lists, Meter tells what is held
//   - Sweeper ends what is due, Purger removes what ended files left, Reconciler mends what slipped through both
//
// Three rules hold everywhere. Every state change is one conditional write that names the state it expects, so a
// repeat changes nothing. The clock decides expiry; deletion by the table's TTL only collects garbage. Every call
// can fail after it took effect, so every operation may be tried again.
package files
