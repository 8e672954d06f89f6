package main

// exceptions are permissions that the end-to-end tests need not use, "function action
// resource", and why the function must have them all the same.
var exceptions = map[string]string{}
