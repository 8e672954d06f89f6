package main

// exceptions are permissions that the end-to-end tests need not use, "function action
// resource", and why the function must have them all the same.
var exceptions = map[string]string{
	"CreateFileFunction s3:DeleteObject ${Bucket.Arn}/files/*":   "takes back bytes that could not be recorded",
	"ReconcileFunction dynamodb:ConditionCheckItem ${Table.Arn}": "puts a lost hold back only while the file still stands",
	"SweepExpiredFunction s3:DeleteObject ${Bucket.Arn}/files/*": "takes its copy back when it is not what was declared, or the file has ended meanwhile",
	"SweepExpiredFunction s3:GetObject ${Bucket.Arn}/files/*":    "compares a copy that another verifier has left",
	"VerifyUploadFunction s3:DeleteObject ${Bucket.Arn}/files/*": "takes its copy back when the file has ended meanwhile",
	"VerifyUploadFunction s3:GetObject ${Bucket.Arn}/files/*":    "compares a copy that another verifier has left",
}
