// Command bench measures what a request of this service costs, next to what one would write instead, and what a file's
// whole way through the service asks of AWS. `make bench` and `make load` run it.
//
//	bench speed   start-up, first and later requests of reserve-upload against its peers; verification; what a hand-off
//	              asks of AWS, and its price
//	bench load    hand-offs per second and their latencies on the local stack
//
// # How speed is measured
//
// The programs are the processes that would run on Lambda: the shipped binary of reserve-upload and, in peers/, plain
// programs that do the same work. Each is started with the environment that template.yaml declares and gets its events
// from a Runtime API server (runtime.go), which notes the time at both ends of each. DynamoDB and STS are stand-ins
// (standin.go) that answer at once, over TLS, so what is left is the program's own time. So is S3 (standin_s3.go) for
// verify-upload, next to a peer that reads the whole object (stream.go). The programs take turns within one run, so
// whatever else the machine does hits all of them alike.
//
// CPU time is read from the kernel's clock of the process, so it is exact and includes all threads and the loading of
// the program. Memory is the kernel's high-water mark.
//
// Lambda gives a function of 128 MB the share 128/1769 of a CPU while it handles an event, and a whole CPU while it
// starts. quota.go emulates that. Only ratios within one run mean anything: the absolute figures are this machine's.
package main
